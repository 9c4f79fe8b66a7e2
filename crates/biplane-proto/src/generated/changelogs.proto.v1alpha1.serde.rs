impl serde::Serialize for ChangeLogEntry {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.timestamp.is_some() {
            len += 1;
        }
        if !self.provider.is_empty() {
            len += 1;
        }
        if !self.api_version.is_empty() {
            len += 1;
        }
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.external_name.is_empty() {
            len += 1;
        }
        if self.operation != 0 {
            len += 1;
        }
        if self.snapshot.is_some() {
            len += 1;
        }
        if self.error_message.is_some() {
            len += 1;
        }
        if !self.additional_details.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("changelogs.proto.v1alpha1.ChangeLogEntry", len)?;
        if let Some(v) = self.timestamp.as_ref() {
            struct_ser.serialize_field("timestamp", v)?;
        }
        if !self.provider.is_empty() {
            struct_ser.serialize_field("provider", &self.provider)?;
        }
        if !self.api_version.is_empty() {
            struct_ser.serialize_field("apiVersion", &self.api_version)?;
        }
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.external_name.is_empty() {
            struct_ser.serialize_field("externalName", &self.external_name)?;
        }
        if self.operation != 0 {
            let v = crate::json::Enum::<OperationType>::new(self.operation);
            struct_ser.serialize_field("operation", &v)?;
        }
        if let Some(v) = self.snapshot.as_ref() {
            struct_ser.serialize_field("snapshot", v)?;
        }
        if let Some(v) = self.error_message.as_ref() {
            struct_ser.serialize_field("errorMessage", v)?;
        }
        if !self.additional_details.is_empty() {
            struct_ser.serialize_field("additionalDetails", &self.additional_details)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChangeLogEntry {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "timestamp",
            "provider",
            "api_version",
            "apiVersion",
            "kind",
            "name",
            "external_name",
            "externalName",
            "operation",
            "snapshot",
            "error_message",
            "errorMessage",
            "additional_details",
            "additionalDetails",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Timestamp,
            Provider,
            ApiVersion,
            Kind,
            Name,
            ExternalName,
            Operation,
            Snapshot,
            ErrorMessage,
            AdditionalDetails,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "timestamp" => Ok(GeneratedField::Timestamp),
                            "provider" => Ok(GeneratedField::Provider),
                            "apiVersion" | "api_version" => Ok(GeneratedField::ApiVersion),
                            "kind" => Ok(GeneratedField::Kind),
                            "name" => Ok(GeneratedField::Name),
                            "externalName" | "external_name" => Ok(GeneratedField::ExternalName),
                            "operation" => Ok(GeneratedField::Operation),
                            "snapshot" => Ok(GeneratedField::Snapshot),
                            "errorMessage" | "error_message" => Ok(GeneratedField::ErrorMessage),
                            "additionalDetails" | "additional_details" => Ok(GeneratedField::AdditionalDetails),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChangeLogEntry;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct changelogs.proto.v1alpha1.ChangeLogEntry")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChangeLogEntry, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut timestamp__ = None;
                let mut provider__ = None;
                let mut api_version__ = None;
                let mut kind__ = None;
                let mut name__ = None;
                let mut external_name__ = None;
                let mut operation__ = None;
                let mut snapshot__ = None;
                let mut error_message__ = None;
                let mut additional_details__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Timestamp => {
                            if timestamp__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timestamp"));
                            }
                            timestamp__ = map_.next_value()?;
                        }
                        GeneratedField::Provider => {
                            if provider__.is_some() {
                                return Err(serde::de::Error::duplicate_field("provider"));
                            }
                            provider__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::ApiVersion => {
                            if api_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("apiVersion"));
                            }
                            api_version__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::ExternalName => {
                            if external_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("externalName"));
                            }
                            external_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Operation => {
                            if operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            operation__ = Some(map_.next_value::<Option<crate::json::Enum<OperationType>>>()?.unwrap_or_default().number());
                        }
                        GeneratedField::Snapshot => {
                            if snapshot__.is_some() {
                                return Err(serde::de::Error::duplicate_field("snapshot"));
                            }
                            snapshot__ = map_.next_value()?;
                        }
                        GeneratedField::ErrorMessage => {
                            if error_message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("errorMessage"));
                            }
                            error_message__ = map_.next_value()?;
                        }
                        GeneratedField::AdditionalDetails => {
                            if additional_details__.is_some() {
                                return Err(serde::de::Error::duplicate_field("additionalDetails"));
                            }
                            additional_details__ = Some(
                                map_.next_value::<Option<std::collections::BTreeMap<_, _>>>()?.unwrap_or_default()
                            );
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChangeLogEntry {
                    timestamp: timestamp__,
                    provider: provider__.unwrap_or_default(),
                    api_version: api_version__.unwrap_or_default(),
                    kind: kind__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    external_name: external_name__.unwrap_or_default(),
                    operation: operation__.unwrap_or_default(),
                    snapshot: snapshot__,
                    error_message: error_message__,
                    additional_details: additional_details__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("changelogs.proto.v1alpha1.ChangeLogEntry", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OperationType {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "OPERATION_TYPE_UNSPECIFIED",
            Self::Create => "OPERATION_TYPE_CREATE",
            Self::Update => "OPERATION_TYPE_UPDATE",
            Self::Delete => "OPERATION_TYPE_DELETE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for OperationType {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "OPERATION_TYPE_UNSPECIFIED",
            "OPERATION_TYPE_CREATE",
            "OPERATION_TYPE_UPDATE",
            "OPERATION_TYPE_DELETE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = OperationType;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok())
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "OPERATION_TYPE_UNSPECIFIED" => Ok(OperationType::Unspecified),
                    "OPERATION_TYPE_CREATE" => Ok(OperationType::Create),
                    "OPERATION_TYPE_UPDATE" => Ok(OperationType::Update),
                    "OPERATION_TYPE_DELETE" => Ok(OperationType::Delete),
                    _ => Err(serde::de::Error::unknown_variant(value, FIELDS)),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for SendChangeLogRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.entry.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("changelogs.proto.v1alpha1.SendChangeLogRequest", len)?;
        if let Some(v) = self.entry.as_ref() {
            struct_ser.serialize_field("entry", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SendChangeLogRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "entry",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Entry,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "entry" => Ok(GeneratedField::Entry),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SendChangeLogRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct changelogs.proto.v1alpha1.SendChangeLogRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SendChangeLogRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut entry__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Entry => {
                            if entry__.is_some() {
                                return Err(serde::de::Error::duplicate_field("entry"));
                            }
                            entry__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SendChangeLogRequest {
                    entry: entry__,
                })
            }
        }
        deserializer.deserialize_struct("changelogs.proto.v1alpha1.SendChangeLogRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SendChangeLogResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("changelogs.proto.v1alpha1.SendChangeLogResponse", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SendChangeLogResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            crate::json::unknown_field(value, GeneratedField::__SkipField__)
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SendChangeLogResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct changelogs.proto.v1alpha1.SendChangeLogResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SendChangeLogResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(SendChangeLogResponse {
                })
            }
        }
        deserializer.deserialize_struct("changelogs.proto.v1alpha1.SendChangeLogResponse", FIELDS, GeneratedVisitor)
    }
}

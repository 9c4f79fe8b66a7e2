impl serde::Serialize for CompositionMeta {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.composition_name.is_empty() {
            len += 1;
        }
        if !self.composite_resource_uid.is_empty() {
            len += 1;
        }
        if !self.composite_resource_name.is_empty() {
            len += 1;
        }
        if !self.composite_resource_namespace.is_empty() {
            len += 1;
        }
        if !self.composite_resource_api_version.is_empty() {
            len += 1;
        }
        if !self.composite_resource_kind.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.CompositionMeta", len)?;
        if !self.composition_name.is_empty() {
            struct_ser.serialize_field("compositionName", &self.composition_name)?;
        }
        if !self.composite_resource_uid.is_empty() {
            struct_ser.serialize_field("compositeResourceUid", &self.composite_resource_uid)?;
        }
        if !self.composite_resource_name.is_empty() {
            struct_ser.serialize_field("compositeResourceName", &self.composite_resource_name)?;
        }
        if !self.composite_resource_namespace.is_empty() {
            struct_ser.serialize_field("compositeResourceNamespace", &self.composite_resource_namespace)?;
        }
        if !self.composite_resource_api_version.is_empty() {
            struct_ser.serialize_field("compositeResourceApiVersion", &self.composite_resource_api_version)?;
        }
        if !self.composite_resource_kind.is_empty() {
            struct_ser.serialize_field("compositeResourceKind", &self.composite_resource_kind)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CompositionMeta {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "composition_name",
            "compositionName",
            "composite_resource_uid",
            "compositeResourceUid",
            "composite_resource_name",
            "compositeResourceName",
            "composite_resource_namespace",
            "compositeResourceNamespace",
            "composite_resource_api_version",
            "compositeResourceApiVersion",
            "composite_resource_kind",
            "compositeResourceKind",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CompositionName,
            CompositeResourceUid,
            CompositeResourceName,
            CompositeResourceNamespace,
            CompositeResourceApiVersion,
            CompositeResourceKind,
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
                            "compositionName" | "composition_name" => Ok(GeneratedField::CompositionName),
                            "compositeResourceUid" | "composite_resource_uid" => Ok(GeneratedField::CompositeResourceUid),
                            "compositeResourceName" | "composite_resource_name" => Ok(GeneratedField::CompositeResourceName),
                            "compositeResourceNamespace" | "composite_resource_namespace" => Ok(GeneratedField::CompositeResourceNamespace),
                            "compositeResourceApiVersion" | "composite_resource_api_version" => Ok(GeneratedField::CompositeResourceApiVersion),
                            "compositeResourceKind" | "composite_resource_kind" => Ok(GeneratedField::CompositeResourceKind),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CompositionMeta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.CompositionMeta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CompositionMeta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut composition_name__ = None;
                let mut composite_resource_uid__ = None;
                let mut composite_resource_name__ = None;
                let mut composite_resource_namespace__ = None;
                let mut composite_resource_api_version__ = None;
                let mut composite_resource_kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CompositionName => {
                            if composition_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositionName"));
                            }
                            composition_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceUid => {
                            if composite_resource_uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceUid"));
                            }
                            composite_resource_uid__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceName => {
                            if composite_resource_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceName"));
                            }
                            composite_resource_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceNamespace => {
                            if composite_resource_namespace__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceNamespace"));
                            }
                            composite_resource_namespace__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceApiVersion => {
                            if composite_resource_api_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceApiVersion"));
                            }
                            composite_resource_api_version__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceKind => {
                            if composite_resource_kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceKind"));
                            }
                            composite_resource_kind__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CompositionMeta {
                    composition_name: composition_name__.unwrap_or_default(),
                    composite_resource_uid: composite_resource_uid__.unwrap_or_default(),
                    composite_resource_name: composite_resource_name__.unwrap_or_default(),
                    composite_resource_namespace: composite_resource_namespace__.unwrap_or_default(),
                    composite_resource_api_version: composite_resource_api_version__.unwrap_or_default(),
                    composite_resource_kind: composite_resource_kind__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.CompositionMeta", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EmitRequestRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.request.is_empty() {
            len += 1;
        }
        if self.meta.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.EmitRequestRequest", len)?;
        if !self.request.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("request", pbjson::private::base64::encode(&self.request).as_str())?;
        }
        if let Some(v) = self.meta.as_ref() {
            struct_ser.serialize_field("meta", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmitRequestRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request",
            "meta",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Request,
            Meta,
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
                            "request" => Ok(GeneratedField::Request),
                            "meta" => Ok(GeneratedField::Meta),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EmitRequestRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.EmitRequestRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmitRequestRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request__ = None;
                let mut meta__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Request => {
                            if request__.is_some() {
                                return Err(serde::de::Error::duplicate_field("request"));
                            }
                            request__ = 
                                map_.next_value::<Option<crate::json::Bytes<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Meta => {
                            if meta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("meta"));
                            }
                            meta__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(EmitRequestRequest {
                    request: request__.unwrap_or_default(),
                    meta: meta__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.EmitRequestRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EmitRequestResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.EmitRequestResponse", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmitRequestResponse {
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
            type Value = EmitRequestResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.EmitRequestResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmitRequestResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(EmitRequestResponse {
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.EmitRequestResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EmitResponseRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.response.is_empty() {
            len += 1;
        }
        if !self.error.is_empty() {
            len += 1;
        }
        if self.meta.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.EmitResponseRequest", len)?;
        if !self.response.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("response", pbjson::private::base64::encode(&self.response).as_str())?;
        }
        if !self.error.is_empty() {
            struct_ser.serialize_field("error", &self.error)?;
        }
        if let Some(v) = self.meta.as_ref() {
            struct_ser.serialize_field("meta", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmitResponseRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "response",
            "error",
            "meta",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Response,
            Error,
            Meta,
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
                            "response" => Ok(GeneratedField::Response),
                            "error" => Ok(GeneratedField::Error),
                            "meta" => Ok(GeneratedField::Meta),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EmitResponseRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.EmitResponseRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmitResponseRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut response__ = None;
                let mut error__ = None;
                let mut meta__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Response => {
                            if response__.is_some() {
                                return Err(serde::de::Error::duplicate_field("response"));
                            }
                            response__ = 
                                map_.next_value::<Option<crate::json::Bytes<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Error => {
                            if error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            error__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Meta => {
                            if meta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("meta"));
                            }
                            meta__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(EmitResponseRequest {
                    response: response__.unwrap_or_default(),
                    error: error__.unwrap_or_default(),
                    meta: meta__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.EmitResponseRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EmitResponseResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.EmitResponseResponse", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmitResponseResponse {
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
            type Value = EmitResponseResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.EmitResponseResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmitResponseResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(EmitResponseResponse {
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.EmitResponseResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OperationMeta {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.operation_name.is_empty() {
            len += 1;
        }
        if !self.operation_uid.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.OperationMeta", len)?;
        if !self.operation_name.is_empty() {
            struct_ser.serialize_field("operationName", &self.operation_name)?;
        }
        if !self.operation_uid.is_empty() {
            struct_ser.serialize_field("operationUid", &self.operation_uid)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OperationMeta {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "operation_name",
            "operationName",
            "operation_uid",
            "operationUid",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            OperationName,
            OperationUid,
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
                            "operationName" | "operation_name" => Ok(GeneratedField::OperationName),
                            "operationUid" | "operation_uid" => Ok(GeneratedField::OperationUid),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OperationMeta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.OperationMeta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OperationMeta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut operation_name__ = None;
                let mut operation_uid__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::OperationName => {
                            if operation_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operationName"));
                            }
                            operation_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::OperationUid => {
                            if operation_uid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operationUid"));
                            }
                            operation_uid__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(OperationMeta {
                    operation_name: operation_name__.unwrap_or_default(),
                    operation_uid: operation_uid__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.OperationMeta", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for StepMeta {
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
        if !self.trace_id.is_empty() {
            len += 1;
        }
        if !self.span_id.is_empty() {
            len += 1;
        }
        if self.step_index != 0 {
            len += 1;
        }
        if !self.step_name.is_empty() {
            len += 1;
        }
        if self.iteration != 0 {
            len += 1;
        }
        if !self.function_name.is_empty() {
            len += 1;
        }
        if self.context.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.pipeline.v1alpha1.StepMeta", len)?;
        if let Some(v) = self.timestamp.as_ref() {
            struct_ser.serialize_field("timestamp", v)?;
        }
        if !self.trace_id.is_empty() {
            struct_ser.serialize_field("traceId", &self.trace_id)?;
        }
        if !self.span_id.is_empty() {
            struct_ser.serialize_field("spanId", &self.span_id)?;
        }
        if self.step_index != 0 {
            struct_ser.serialize_field("stepIndex", &self.step_index)?;
        }
        if !self.step_name.is_empty() {
            struct_ser.serialize_field("stepName", &self.step_name)?;
        }
        if self.iteration != 0 {
            struct_ser.serialize_field("iteration", &self.iteration)?;
        }
        if !self.function_name.is_empty() {
            struct_ser.serialize_field("functionName", &self.function_name)?;
        }
        if let Some(v) = self.context.as_ref() {
            match v {
                step_meta::Context::OperationMeta(v) => {
                    struct_ser.serialize_field("operationMeta", v)?;
                }
                step_meta::Context::CompositionMeta(v) => {
                    struct_ser.serialize_field("compositionMeta", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for StepMeta {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "timestamp",
            "trace_id",
            "traceId",
            "span_id",
            "spanId",
            "step_index",
            "stepIndex",
            "step_name",
            "stepName",
            "iteration",
            "function_name",
            "functionName",
            "operation_meta",
            "operationMeta",
            "composition_meta",
            "compositionMeta",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Timestamp,
            TraceId,
            SpanId,
            StepIndex,
            StepName,
            Iteration,
            FunctionName,
            OperationMeta,
            CompositionMeta,
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
                            "traceId" | "trace_id" => Ok(GeneratedField::TraceId),
                            "spanId" | "span_id" => Ok(GeneratedField::SpanId),
                            "stepIndex" | "step_index" => Ok(GeneratedField::StepIndex),
                            "stepName" | "step_name" => Ok(GeneratedField::StepName),
                            "iteration" => Ok(GeneratedField::Iteration),
                            "functionName" | "function_name" => Ok(GeneratedField::FunctionName),
                            "operationMeta" | "operation_meta" => Ok(GeneratedField::OperationMeta),
                            "compositionMeta" | "composition_meta" => Ok(GeneratedField::CompositionMeta),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = StepMeta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.pipeline.v1alpha1.StepMeta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<StepMeta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut timestamp__ = None;
                let mut trace_id__ = None;
                let mut span_id__ = None;
                let mut step_index__ = None;
                let mut step_name__ = None;
                let mut iteration__ = None;
                let mut function_name__ = None;
                let mut context__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Timestamp => {
                            if timestamp__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timestamp"));
                            }
                            timestamp__ = map_.next_value()?;
                        }
                        GeneratedField::TraceId => {
                            if trace_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("traceId"));
                            }
                            trace_id__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::SpanId => {
                            if span_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("spanId"));
                            }
                            span_id__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::StepIndex => {
                            if step_index__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stepIndex"));
                            }
                            step_index__ = 
                                map_.next_value::<Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::StepName => {
                            if step_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stepName"));
                            }
                            step_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Iteration => {
                            if iteration__.is_some() {
                                return Err(serde::de::Error::duplicate_field("iteration"));
                            }
                            iteration__ = 
                                map_.next_value::<Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::FunctionName => {
                            if function_name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("functionName"));
                            }
                            function_name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::OperationMeta => {
                            if context__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operationMeta"));
                            }
                            context__ = map_.next_value::<::std::option::Option<_>>()?.map(step_meta::Context::OperationMeta)
;
                        }
                        GeneratedField::CompositionMeta => {
                            if context__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositionMeta"));
                            }
                            context__ = map_.next_value::<::std::option::Option<_>>()?.map(step_meta::Context::CompositionMeta)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(StepMeta {
                    timestamp: timestamp__,
                    trace_id: trace_id__.unwrap_or_default(),
                    span_id: span_id__.unwrap_or_default(),
                    step_index: step_index__.unwrap_or_default(),
                    step_name: step_name__.unwrap_or_default(),
                    iteration: iteration__.unwrap_or_default(),
                    function_name: function_name__.unwrap_or_default(),
                    context: context__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.pipeline.v1alpha1.StepMeta", FIELDS, GeneratedVisitor)
    }
}

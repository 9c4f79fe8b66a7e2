impl serde::Serialize for CompositeInput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.composite_resource.is_some() {
            len += 1;
        }
        if self.composition.is_some() {
            len += 1;
        }
        if !self.functions.is_empty() {
            len += 1;
        }
        if !self.observed_resources.is_empty() {
            len += 1;
        }
        if !self.required_resources.is_empty() {
            len += 1;
        }
        if !self.credentials.is_empty() {
            len += 1;
        }
        if !self.required_schemas.is_empty() {
            len += 1;
        }
        if self.composite_resource_definition.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.CompositeInput", len)?;
        if let Some(v) = self.composite_resource.as_ref() {
            struct_ser.serialize_field("compositeResource", v)?;
        }
        if let Some(v) = self.composition.as_ref() {
            struct_ser.serialize_field("composition", v)?;
        }
        if !self.functions.is_empty() {
            struct_ser.serialize_field("functions", &self.functions)?;
        }
        if !self.observed_resources.is_empty() {
            struct_ser.serialize_field("observedResources", &self.observed_resources)?;
        }
        if !self.required_resources.is_empty() {
            struct_ser.serialize_field("requiredResources", &self.required_resources)?;
        }
        if !self.credentials.is_empty() {
            struct_ser.serialize_field("credentials", &self.credentials)?;
        }
        if !self.required_schemas.is_empty() {
            struct_ser.serialize_field("requiredSchemas", &self.required_schemas)?;
        }
        if let Some(v) = self.composite_resource_definition.as_ref() {
            struct_ser.serialize_field("compositeResourceDefinition", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CompositeInput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "composite_resource",
            "compositeResource",
            "composition",
            "functions",
            "observed_resources",
            "observedResources",
            "required_resources",
            "requiredResources",
            "credentials",
            "required_schemas",
            "requiredSchemas",
            "composite_resource_definition",
            "compositeResourceDefinition",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CompositeResource,
            Composition,
            Functions,
            ObservedResources,
            RequiredResources,
            Credentials,
            RequiredSchemas,
            CompositeResourceDefinition,
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
                            "compositeResource" | "composite_resource" => Ok(GeneratedField::CompositeResource),
                            "composition" => Ok(GeneratedField::Composition),
                            "functions" => Ok(GeneratedField::Functions),
                            "observedResources" | "observed_resources" => Ok(GeneratedField::ObservedResources),
                            "requiredResources" | "required_resources" => Ok(GeneratedField::RequiredResources),
                            "credentials" => Ok(GeneratedField::Credentials),
                            "requiredSchemas" | "required_schemas" => Ok(GeneratedField::RequiredSchemas),
                            "compositeResourceDefinition" | "composite_resource_definition" => Ok(GeneratedField::CompositeResourceDefinition),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CompositeInput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.CompositeInput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CompositeInput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut composite_resource__ = None;
                let mut composition__ = None;
                let mut functions__ = None;
                let mut observed_resources__ = None;
                let mut required_resources__ = None;
                let mut credentials__ = None;
                let mut required_schemas__ = None;
                let mut composite_resource_definition__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CompositeResource => {
                            if composite_resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResource"));
                            }
                            composite_resource__ = map_.next_value()?;
                        }
                        GeneratedField::Composition => {
                            if composition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("composition"));
                            }
                            composition__ = map_.next_value()?;
                        }
                        GeneratedField::Functions => {
                            if functions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("functions"));
                            }
                            functions__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::ObservedResources => {
                            if observed_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("observedResources"));
                            }
                            observed_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredResources => {
                            if required_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredResources"));
                            }
                            required_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Credentials => {
                            if credentials__.is_some() {
                                return Err(serde::de::Error::duplicate_field("credentials"));
                            }
                            credentials__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredSchemas => {
                            if required_schemas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredSchemas"));
                            }
                            required_schemas__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::CompositeResourceDefinition => {
                            if composite_resource_definition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResourceDefinition"));
                            }
                            composite_resource_definition__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CompositeInput {
                    composite_resource: composite_resource__,
                    composition: composition__,
                    functions: functions__.unwrap_or_default(),
                    observed_resources: observed_resources__.unwrap_or_default(),
                    required_resources: required_resources__.unwrap_or_default(),
                    credentials: credentials__.unwrap_or_default(),
                    required_schemas: required_schemas__.unwrap_or_default(),
                    composite_resource_definition: composite_resource_definition__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.CompositeInput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CompositeOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.composite_resource.is_some() {
            len += 1;
        }
        if !self.composed_resources.is_empty() {
            len += 1;
        }
        if !self.deleted_resources.is_empty() {
            len += 1;
        }
        if !self.events.is_empty() {
            len += 1;
        }
        if !self.required_resources.is_empty() {
            len += 1;
        }
        if !self.required_schemas.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.CompositeOutput", len)?;
        if let Some(v) = self.composite_resource.as_ref() {
            struct_ser.serialize_field("compositeResource", v)?;
        }
        if !self.composed_resources.is_empty() {
            struct_ser.serialize_field("composedResources", &self.composed_resources)?;
        }
        if !self.deleted_resources.is_empty() {
            struct_ser.serialize_field("deletedResources", &self.deleted_resources)?;
        }
        if !self.events.is_empty() {
            struct_ser.serialize_field("events", &self.events)?;
        }
        if !self.required_resources.is_empty() {
            struct_ser.serialize_field("requiredResources", &self.required_resources)?;
        }
        if !self.required_schemas.is_empty() {
            struct_ser.serialize_field("requiredSchemas", &self.required_schemas)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CompositeOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "composite_resource",
            "compositeResource",
            "composed_resources",
            "composedResources",
            "deleted_resources",
            "deletedResources",
            "events",
            "required_resources",
            "requiredResources",
            "required_schemas",
            "requiredSchemas",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CompositeResource,
            ComposedResources,
            DeletedResources,
            Events,
            RequiredResources,
            RequiredSchemas,
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
                            "compositeResource" | "composite_resource" => Ok(GeneratedField::CompositeResource),
                            "composedResources" | "composed_resources" => Ok(GeneratedField::ComposedResources),
                            "deletedResources" | "deleted_resources" => Ok(GeneratedField::DeletedResources),
                            "events" => Ok(GeneratedField::Events),
                            "requiredResources" | "required_resources" => Ok(GeneratedField::RequiredResources),
                            "requiredSchemas" | "required_schemas" => Ok(GeneratedField::RequiredSchemas),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CompositeOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.CompositeOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CompositeOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut composite_resource__ = None;
                let mut composed_resources__ = None;
                let mut deleted_resources__ = None;
                let mut events__ = None;
                let mut required_resources__ = None;
                let mut required_schemas__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CompositeResource => {
                            if composite_resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("compositeResource"));
                            }
                            composite_resource__ = map_.next_value()?;
                        }
                        GeneratedField::ComposedResources => {
                            if composed_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("composedResources"));
                            }
                            composed_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::DeletedResources => {
                            if deleted_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deletedResources"));
                            }
                            deleted_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Events => {
                            if events__.is_some() {
                                return Err(serde::de::Error::duplicate_field("events"));
                            }
                            events__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredResources => {
                            if required_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredResources"));
                            }
                            required_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredSchemas => {
                            if required_schemas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredSchemas"));
                            }
                            required_schemas__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CompositeOutput {
                    composite_resource: composite_resource__,
                    composed_resources: composed_resources__.unwrap_or_default(),
                    deleted_resources: deleted_resources__.unwrap_or_default(),
                    events: events__.unwrap_or_default(),
                    required_resources: required_resources__.unwrap_or_default(),
                    required_schemas: required_schemas__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.CompositeOutput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CronOperationInput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.cron_operation.is_some() {
            len += 1;
        }
        if self.scheduled_time.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.CronOperationInput", len)?;
        if let Some(v) = self.cron_operation.as_ref() {
            struct_ser.serialize_field("cronOperation", v)?;
        }
        if let Some(v) = self.scheduled_time.as_ref() {
            struct_ser.serialize_field("scheduledTime", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CronOperationInput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "cron_operation",
            "cronOperation",
            "scheduled_time",
            "scheduledTime",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CronOperation,
            ScheduledTime,
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
                            "cronOperation" | "cron_operation" => Ok(GeneratedField::CronOperation),
                            "scheduledTime" | "scheduled_time" => Ok(GeneratedField::ScheduledTime),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CronOperationInput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.CronOperationInput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CronOperationInput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut cron_operation__ = None;
                let mut scheduled_time__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CronOperation => {
                            if cron_operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cronOperation"));
                            }
                            cron_operation__ = map_.next_value()?;
                        }
                        GeneratedField::ScheduledTime => {
                            if scheduled_time__.is_some() {
                                return Err(serde::de::Error::duplicate_field("scheduledTime"));
                            }
                            scheduled_time__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CronOperationInput {
                    cron_operation: cron_operation__,
                    scheduled_time: scheduled_time__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.CronOperationInput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CronOperationOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.operation.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.CronOperationOutput", len)?;
        if let Some(v) = self.operation.as_ref() {
            struct_ser.serialize_field("operation", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CronOperationOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "operation",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Operation,
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
                            "operation" => Ok(GeneratedField::Operation),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CronOperationOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.CronOperationOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CronOperationOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut operation__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Operation => {
                            if operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            operation__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CronOperationOutput {
                    operation: operation__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.CronOperationOutput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Event {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.Event", len)?;
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Event {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "type",
            "reason",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Type,
            Reason,
            Message,
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
                            "type" => Ok(GeneratedField::Type),
                            "reason" => Ok(GeneratedField::Reason),
                            "message" => Ok(GeneratedField::Message),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Event;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.Event")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Event, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut r#type__ = None;
                let mut reason__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Event {
                    r#type: r#type__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.Event", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FunctionInput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.address.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.FunctionInput", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.address.is_empty() {
            struct_ser.serialize_field("address", &self.address)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FunctionInput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "address",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Address,
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
                            "name" => Ok(GeneratedField::Name),
                            "address" => Ok(GeneratedField::Address),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FunctionInput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.FunctionInput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FunctionInput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut address__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Address => {
                            if address__.is_some() {
                                return Err(serde::de::Error::duplicate_field("address"));
                            }
                            address__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(FunctionInput {
                    name: name__.unwrap_or_default(),
                    address: address__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.FunctionInput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OperationInput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.operation.is_some() {
            len += 1;
        }
        if !self.functions.is_empty() {
            len += 1;
        }
        if !self.required_resources.is_empty() {
            len += 1;
        }
        if !self.credentials.is_empty() {
            len += 1;
        }
        if !self.required_schemas.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.OperationInput", len)?;
        if let Some(v) = self.operation.as_ref() {
            struct_ser.serialize_field("operation", v)?;
        }
        if !self.functions.is_empty() {
            struct_ser.serialize_field("functions", &self.functions)?;
        }
        if !self.required_resources.is_empty() {
            struct_ser.serialize_field("requiredResources", &self.required_resources)?;
        }
        if !self.credentials.is_empty() {
            struct_ser.serialize_field("credentials", &self.credentials)?;
        }
        if !self.required_schemas.is_empty() {
            struct_ser.serialize_field("requiredSchemas", &self.required_schemas)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OperationInput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "operation",
            "functions",
            "required_resources",
            "requiredResources",
            "credentials",
            "required_schemas",
            "requiredSchemas",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Operation,
            Functions,
            RequiredResources,
            Credentials,
            RequiredSchemas,
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
                            "operation" => Ok(GeneratedField::Operation),
                            "functions" => Ok(GeneratedField::Functions),
                            "requiredResources" | "required_resources" => Ok(GeneratedField::RequiredResources),
                            "credentials" => Ok(GeneratedField::Credentials),
                            "requiredSchemas" | "required_schemas" => Ok(GeneratedField::RequiredSchemas),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OperationInput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.OperationInput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OperationInput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut operation__ = None;
                let mut functions__ = None;
                let mut required_resources__ = None;
                let mut credentials__ = None;
                let mut required_schemas__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Operation => {
                            if operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            operation__ = map_.next_value()?;
                        }
                        GeneratedField::Functions => {
                            if functions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("functions"));
                            }
                            functions__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredResources => {
                            if required_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredResources"));
                            }
                            required_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Credentials => {
                            if credentials__.is_some() {
                                return Err(serde::de::Error::duplicate_field("credentials"));
                            }
                            credentials__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredSchemas => {
                            if required_schemas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredSchemas"));
                            }
                            required_schemas__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(OperationInput {
                    operation: operation__,
                    functions: functions__.unwrap_or_default(),
                    required_resources: required_resources__.unwrap_or_default(),
                    credentials: credentials__.unwrap_or_default(),
                    required_schemas: required_schemas__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.OperationInput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OperationOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.operation.is_some() {
            len += 1;
        }
        if !self.applied_resources.is_empty() {
            len += 1;
        }
        if !self.events.is_empty() {
            len += 1;
        }
        if !self.required_resources.is_empty() {
            len += 1;
        }
        if !self.required_schemas.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.OperationOutput", len)?;
        if let Some(v) = self.operation.as_ref() {
            struct_ser.serialize_field("operation", v)?;
        }
        if !self.applied_resources.is_empty() {
            struct_ser.serialize_field("appliedResources", &self.applied_resources)?;
        }
        if !self.events.is_empty() {
            struct_ser.serialize_field("events", &self.events)?;
        }
        if !self.required_resources.is_empty() {
            struct_ser.serialize_field("requiredResources", &self.required_resources)?;
        }
        if !self.required_schemas.is_empty() {
            struct_ser.serialize_field("requiredSchemas", &self.required_schemas)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OperationOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "operation",
            "applied_resources",
            "appliedResources",
            "events",
            "required_resources",
            "requiredResources",
            "required_schemas",
            "requiredSchemas",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Operation,
            AppliedResources,
            Events,
            RequiredResources,
            RequiredSchemas,
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
                            "operation" => Ok(GeneratedField::Operation),
                            "appliedResources" | "applied_resources" => Ok(GeneratedField::AppliedResources),
                            "events" => Ok(GeneratedField::Events),
                            "requiredResources" | "required_resources" => Ok(GeneratedField::RequiredResources),
                            "requiredSchemas" | "required_schemas" => Ok(GeneratedField::RequiredSchemas),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OperationOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.OperationOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OperationOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut operation__ = None;
                let mut applied_resources__ = None;
                let mut events__ = None;
                let mut required_resources__ = None;
                let mut required_schemas__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Operation => {
                            if operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            operation__ = map_.next_value()?;
                        }
                        GeneratedField::AppliedResources => {
                            if applied_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("appliedResources"));
                            }
                            applied_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::Events => {
                            if events__.is_some() {
                                return Err(serde::de::Error::duplicate_field("events"));
                            }
                            events__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredResources => {
                            if required_resources__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredResources"));
                            }
                            required_resources__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::RequiredSchemas => {
                            if required_schemas__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requiredSchemas"));
                            }
                            required_schemas__ = Some(map_.next_value::<Option<_>>()?.unwrap_or_default());
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(OperationOutput {
                    operation: operation__,
                    applied_resources: applied_resources__.unwrap_or_default(),
                    events: events__.unwrap_or_default(),
                    required_resources: required_resources__.unwrap_or_default(),
                    required_schemas: required_schemas__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.OperationOutput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RenderRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.meta.is_some() {
            len += 1;
        }
        if self.input.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.RenderRequest", len)?;
        if let Some(v) = self.meta.as_ref() {
            struct_ser.serialize_field("meta", v)?;
        }
        if let Some(v) = self.input.as_ref() {
            match v {
                render_request::Input::Composite(v) => {
                    struct_ser.serialize_field("composite", v)?;
                }
                render_request::Input::Operation(v) => {
                    struct_ser.serialize_field("operation", v)?;
                }
                render_request::Input::CronOperation(v) => {
                    struct_ser.serialize_field("cronOperation", v)?;
                }
                render_request::Input::WatchOperation(v) => {
                    struct_ser.serialize_field("watchOperation", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RenderRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "meta",
            "composite",
            "operation",
            "cron_operation",
            "cronOperation",
            "watch_operation",
            "watchOperation",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Meta,
            Composite,
            Operation,
            CronOperation,
            WatchOperation,
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
                            "meta" => Ok(GeneratedField::Meta),
                            "composite" => Ok(GeneratedField::Composite),
                            "operation" => Ok(GeneratedField::Operation),
                            "cronOperation" | "cron_operation" => Ok(GeneratedField::CronOperation),
                            "watchOperation" | "watch_operation" => Ok(GeneratedField::WatchOperation),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RenderRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.RenderRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RenderRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut meta__ = None;
                let mut input__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Meta => {
                            if meta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("meta"));
                            }
                            meta__ = map_.next_value()?;
                        }
                        GeneratedField::Composite => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("composite"));
                            }
                            input__ = map_.next_value::<::std::option::Option<_>>()?.map(render_request::Input::Composite)
;
                        }
                        GeneratedField::Operation => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            input__ = map_.next_value::<::std::option::Option<_>>()?.map(render_request::Input::Operation)
;
                        }
                        GeneratedField::CronOperation => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cronOperation"));
                            }
                            input__ = map_.next_value::<::std::option::Option<_>>()?.map(render_request::Input::CronOperation)
;
                        }
                        GeneratedField::WatchOperation => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("watchOperation"));
                            }
                            input__ = map_.next_value::<::std::option::Option<_>>()?.map(render_request::Input::WatchOperation)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(RenderRequest {
                    meta: meta__,
                    input: input__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.RenderRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RenderResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.meta.is_some() {
            len += 1;
        }
        if self.output.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.RenderResponse", len)?;
        if let Some(v) = self.meta.as_ref() {
            struct_ser.serialize_field("meta", v)?;
        }
        if let Some(v) = self.output.as_ref() {
            match v {
                render_response::Output::Composite(v) => {
                    struct_ser.serialize_field("composite", v)?;
                }
                render_response::Output::Operation(v) => {
                    struct_ser.serialize_field("operation", v)?;
                }
                render_response::Output::CronOperation(v) => {
                    struct_ser.serialize_field("cronOperation", v)?;
                }
                render_response::Output::WatchOperation(v) => {
                    struct_ser.serialize_field("watchOperation", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RenderResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "meta",
            "composite",
            "operation",
            "cron_operation",
            "cronOperation",
            "watch_operation",
            "watchOperation",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Meta,
            Composite,
            Operation,
            CronOperation,
            WatchOperation,
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
                            "meta" => Ok(GeneratedField::Meta),
                            "composite" => Ok(GeneratedField::Composite),
                            "operation" => Ok(GeneratedField::Operation),
                            "cronOperation" | "cron_operation" => Ok(GeneratedField::CronOperation),
                            "watchOperation" | "watch_operation" => Ok(GeneratedField::WatchOperation),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RenderResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.RenderResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RenderResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut meta__ = None;
                let mut output__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Meta => {
                            if meta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("meta"));
                            }
                            meta__ = map_.next_value()?;
                        }
                        GeneratedField::Composite => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("composite"));
                            }
                            output__ = map_.next_value::<::std::option::Option<_>>()?.map(render_response::Output::Composite)
;
                        }
                        GeneratedField::Operation => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            output__ = map_.next_value::<::std::option::Option<_>>()?.map(render_response::Output::Operation)
;
                        }
                        GeneratedField::CronOperation => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cronOperation"));
                            }
                            output__ = map_.next_value::<::std::option::Option<_>>()?.map(render_response::Output::CronOperation)
;
                        }
                        GeneratedField::WatchOperation => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("watchOperation"));
                            }
                            output__ = map_.next_value::<::std::option::Option<_>>()?.map(render_response::Output::WatchOperation)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(RenderResponse {
                    meta: meta__,
                    output: output__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.RenderResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RequestMeta {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.RequestMeta", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RequestMeta {
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
            type Value = RequestMeta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.RequestMeta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RequestMeta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(RequestMeta {
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.RequestMeta", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ResponseMeta {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.ResponseMeta", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ResponseMeta {
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
            type Value = ResponseMeta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.ResponseMeta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ResponseMeta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(ResponseMeta {
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.ResponseMeta", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WatchOperationInput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.watch_operation.is_some() {
            len += 1;
        }
        if self.watched_resource.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.WatchOperationInput", len)?;
        if let Some(v) = self.watch_operation.as_ref() {
            struct_ser.serialize_field("watchOperation", v)?;
        }
        if let Some(v) = self.watched_resource.as_ref() {
            struct_ser.serialize_field("watchedResource", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WatchOperationInput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "watch_operation",
            "watchOperation",
            "watched_resource",
            "watchedResource",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            WatchOperation,
            WatchedResource,
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
                            "watchOperation" | "watch_operation" => Ok(GeneratedField::WatchOperation),
                            "watchedResource" | "watched_resource" => Ok(GeneratedField::WatchedResource),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WatchOperationInput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.WatchOperationInput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WatchOperationInput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut watch_operation__ = None;
                let mut watched_resource__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::WatchOperation => {
                            if watch_operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("watchOperation"));
                            }
                            watch_operation__ = map_.next_value()?;
                        }
                        GeneratedField::WatchedResource => {
                            if watched_resource__.is_some() {
                                return Err(serde::de::Error::duplicate_field("watchedResource"));
                            }
                            watched_resource__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(WatchOperationInput {
                    watch_operation: watch_operation__,
                    watched_resource: watched_resource__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.WatchOperationInput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for WatchOperationOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.operation.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("crossplane.render.v1alpha1.WatchOperationOutput", len)?;
        if let Some(v) = self.operation.as_ref() {
            struct_ser.serialize_field("operation", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for WatchOperationOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "operation",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Operation,
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
                            "operation" => Ok(GeneratedField::Operation),
                            _ => crate::json::unknown_field(value, GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = WatchOperationOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct crossplane.render.v1alpha1.WatchOperationOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<WatchOperationOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut operation__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Operation => {
                            if operation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("operation"));
                            }
                            operation__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(WatchOperationOutput {
                    operation: operation__,
                })
            }
        }
        deserializer.deserialize_struct("crossplane.render.v1alpha1.WatchOperationOutput", FIELDS, GeneratedVisitor)
    }
}

//! The condition that `getResourceCondition` returns, a Go struct with fields and methods.

use std::any::Any;

use biplane_go::time::GoTime;
use biplane_template::func::{Call, Failure};
use biplane_template::sprig::time::{TIME, Time};
use biplane_template::types::{Kind, Type};
use biplane_template::value::{Json, Object, Signature, Value};

/// `v2.Condition`.
pub(super) const CONDITION: Type = Type::named("v2.Condition", Kind::Struct);
const CONDITION_TYPE: Type = Type::named("v2.ConditionType", Kind::String);
const CONDITION_STATUS: Type = Type::named("v1.ConditionStatus", Kind::String);
const CONDITION_REASON: Type = Type::named("v2.ConditionReason", Kind::String);
const META_TIME: Type = Type::named("v1.Time", Kind::Struct);

/// A condition of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) last_transition_time: GoTime,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) observed_generation: i64,
}

impl Condition {
    fn value(&self) -> [(&'static str, Value); 6] {
        let text = |go_type, text: &str| Value::object(Word { go_type, text: text.to_owned() });
        [
            ("Type", text(CONDITION_TYPE, &self.kind)),
            ("Status", text(CONDITION_STATUS, &self.status)),
            ("LastTransitionTime", Value::object(MetaTime(self.last_transition_time.clone()))),
            ("Reason", text(CONDITION_REASON, &self.reason)),
            ("Message", Value::text(self.message.as_str())),
            ("ObservedGeneration", Value::int64(self.observed_generation)),
        ]
    }
}

impl Object for Condition {
    fn go_type(&self) -> Type {
        CONDITION
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.value().into()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Equal" => Some(Signature::new(&[CONDITION], Type::Bool)),
            "WithMessage" => Some(Signature::new(&[Type::String], CONDITION)),
            "WithObservedGeneration" => Some(Signature::new(&[Type::INT64], CONDITION)),
            _ => None,
        }
    }

    fn call(&self, name: &str, _: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        match (name, args) {
            ("Equal", [Value::Object(other)]) => {
                let other = other.as_any().downcast_ref::<Self>();
                // The time of the transition does not count.
                let timeless = |condition: &Self| Self {
                    last_transition_time: GoTime::zero(),
                    ..condition.clone()
                };
                Ok(Value::Bool(other.is_some_and(|other| timeless(other) == timeless(self))))
            }
            ("WithMessage", [Value::Str(message)]) => {
                Ok(Value::object(Self { message: message.to_lossy().into_owned(), ..self.clone() }))
            }
            ("WithObservedGeneration", [Value::Int(_, generation)]) => {
                Ok(Value::object(Self { observed_generation: *generation, ..self.clone() }))
            }
            _ => Err(Failure::new(format!("no method {name}"))),
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let methods = ["Equal", "WithMessage", "WithObservedGeneration"];
        self.value().into_iter().map(|(name, _)| name).chain(methods).collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }

    fn json(&self) -> Json {
        let [kind, status, time, reason, message, generation] = self.value();
        let mut fields = vec![
            ("type", kind.1),
            ("status", status.1),
            ("lastTransitionTime", time.1),
            ("reason", reason.1),
        ];
        if !self.message.is_empty() {
            fields.push(("message", message.1));
        }
        if self.observed_generation != 0 {
            fields.push(("observedGeneration", generation.1));
        }
        Json::Fields(fields)
    }
}

/// A string with a type of its own.
#[derive(Debug)]
struct Word {
    go_type: Type,
    text: String,
}

impl Object for Word {
    fn go_type(&self) -> Type {
        self.go_type
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::text(self.text.as_str()))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| other.text == self.text)
    }
}

/// `v1.Time`: a struct around `time.Time` that has most of its methods.
#[derive(Debug)]
pub(super) struct MetaTime(pub(super) GoTime);

impl MetaTime {
    /// Methods of the same name with a pointer receiver hide these.
    const HIDDEN: [&str; 3] = ["IsZero", "Before", "Equal"];

    fn inner(&self) -> Time {
        Time(self.0.clone())
    }
}

impl Object for MetaTime {
    fn go_type(&self) -> Type {
        META_TIME
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn string(&self) -> Option<String> {
        self.inner().string()
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Time", Value::object(self.inner()))]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Rfc3339Copy" => Some(Signature::new(&[], META_TIME)),
            name if Self::HIDDEN.contains(&name) => None,
            name => self.inner().method(name),
        }
    }

    fn call(&self, name: &str, call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        match name {
            // It drops fractions of a second.
            "Rfc3339Copy" => Ok(Value::object(Self(GoTime::in_zone(
                self.0.seconds(),
                0,
                self.0.offset(),
                self.0.zone(),
            )))),
            name => self.inner().call(name, call, args),
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let inner = self.inner().names().into_iter().filter(|name| !Self::HIDDEN.contains(name));
        inner.chain(["Time", "Rfc3339Copy"]).collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| other.0 == self.0)
    }

    fn json(&self) -> Json {
        if self.0.is_zero() {
            return Json::As(Value::Nil);
        }
        let utc = GoTime::utc(self.0.seconds(), 0);
        Json::As(Value::text(utc.rfc3339()))
    }
}

/// Whether a value is a `time.Time`.
pub(super) fn time_of(object: &dyn Object) -> Option<&GoTime> {
    if object.go_type() != TIME {
        return None;
    }
    object.as_any().downcast_ref::<Time>().map(|time| &time.0)
}

//! Feature gates, in the syntax of Kubernetes.

/// Why feature gates could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no `=` after the name.
    #[error("missing bool value for {0}")]
    MissingValue(String),
    /// The value after `=` is not a boolean.
    #[error(
        "invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
        biplane_go::fmt::quote(value)
    )]
    InvalidValue {
        /// The name of the gate.
        name: String,
        /// The given value.
        value: String,
    },
    /// The gate does not exist.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
}

/// The enabled features.
#[derive(Debug, Default)]
pub(super) struct Gates {
    cel_customizations: Option<bool>,
    all_alpha: bool,
}

impl Gates {
    /// Whether users' rules are evaluated. This gate takes precedence over the gate of its stage.
    pub(super) fn cel_customizations(&self) -> bool {
        self.cel_customizations.unwrap_or(self.all_alpha)
    }

    pub(super) fn set(&mut self, text: &str) -> Result<(), GateError> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(GateError::MissingValue(part.to_owned()));
            };
            let (name, value) = (name.trim(), value.trim());
            let on = match value {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
                "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
                _ => {
                    let (name, value) = (name.to_owned(), value.to_owned());
                    return Err(GateError::InvalidValue { name, value });
                }
            };
            match name {
                "CELHealthcheckCustomizations" => self.cel_customizations = Some(on),
                "AllAlpha" => self.all_alpha = on,
                "AllBeta" => {}
                _ => return Err(GateError::Unknown(name.to_owned())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Gates;

    /// AR-2.
    #[test]
    fn gates_are_names_with_booleans() {
        for (text, on) in [
            ("", false),
            ("CELHealthcheckCustomizations=true", true),
            (" AllAlpha = T , ", true),
            ("AllAlpha=true,CELHealthcheckCustomizations=false", false),
            ("AllBeta=true", false),
        ] {
            let mut gates = Gates::default();
            gates.set(text).unwrap();
            assert_eq!(gates.cel_customizations(), on, "{text}");
        }
    }

    #[test]
    fn unknown_names_and_other_values_are_errors() {
        for (text, message) in [
            ("Nope=true", "unrecognized feature gate: Nope"),
            ("AllAlpha", "missing bool value for AllAlpha"),
            (
                "AllAlpha=yes",
                "invalid value of AllAlpha=yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
            ),
        ] {
            assert_eq!(Gates::default().set(text).unwrap_err().to_string(), message);
        }
    }
}

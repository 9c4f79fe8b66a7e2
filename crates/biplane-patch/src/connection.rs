//! Connection details of a composed resource.

use std::collections::BTreeMap;

use biplane_function::{Budget, Exceeded};
use biplane_go::json;
use biplane_model::{Object, Value};

use crate::prepared::{ConnectionDetail, DetailSource};

/// Connection details: decoded bytes by key.
pub type Details = BTreeMap<String, Vec<u8>>;

/// Returns the connection details of an observed resource. Missing values are left out.
pub fn extract(
    object: &Object,
    observed: &Details,
    wanted: &[ConnectionDetail],
    budget: &Budget,
) -> Result<Details, Exceeded> {
    let mut details = Details::new();
    for detail in wanted {
        let value = match &detail.from {
            DetailSource::Value(value) => Some(value.clone().into_bytes()),
            DetailSource::Key(key) => observed.get(key).cloned(),
            DetailSource::Field(path) => {
                let found = path.as_ref().ok().and_then(|path| path.get(object).ok());
                found.map(|found| match found {
                    Value::String(text) => text.clone().into_bytes(),
                    other => json::to_string(other).into_bytes(),
                })
            }
        };
        let Some(value) = value else { continue };
        budget.make(ENTRY_SIZE + detail.name.len() + value.len())?;
        details.insert(detail.name.clone(), value);
    }
    Ok(details)
}

/// About how many bytes an entry takes besides its texts.
const ENTRY_SIZE: usize = 100;

//! Deleting.

use serde_json::{Map, Value};

use super::{FieldPath, PathError, Segment, print};

impl FieldPath {
    /// Removes what is at this path. That nothing is there is fine; that nothing can be there is
    /// not. What contained it stays, even if it is empty now.
    pub fn delete(&self, document: &mut Map<String, Value>) -> Result<(), PathError> {
        let refuse = |what| Err(PathError::Mismatch(format!("cannot delete {self}: {what}")));
        let Some((last, parents)) = self.segments.split_last() else { return Ok(()) };
        let Some((first, rest)) = parents.split_first() else {
            return match last {
                Segment::Field(name) => {
                    document.remove(name);
                    Ok(())
                }
                Segment::Index(_) => refuse("not an array"),
            };
        };
        let mut node = match first {
            Segment::Field(name) => document.get_mut(name),
            Segment::Index(_) => return Err(PathError::Mismatch(" is not an array".into())),
        };
        for (taken, segment) in rest.iter().enumerate() {
            let before = || print(self.segments.get(..=taken).unwrap_or_default());
            node = match (segment, node) {
                (_, None) => return Ok(()),
                (Segment::Index(index), Some(Value::Array(items))) => {
                    items.get_mut(*index as usize)
                }
                (Segment::Field(name), Some(Value::Object(map))) => map.get_mut(name),
                (Segment::Index(_), _) => {
                    return Err(PathError::Mismatch(format!("{} is not an array", before())));
                }
                (Segment::Field(_), _) => {
                    return Err(PathError::Mismatch(format!("{} is not an object", before())));
                }
            };
        }
        match (last, node) {
            (_, None) => {}
            (Segment::Index(index), Some(Value::Array(items))) => {
                if items.len() > *index as usize {
                    items.remove(*index as usize);
                }
            }
            (Segment::Field(name), Some(Value::Object(map))) => {
                map.remove(name);
            }
            (Segment::Index(_), _) => return refuse("not an array"),
            (Segment::Field(_), _) => return refuse("not an object"),
        }
        Ok(())
    }
}

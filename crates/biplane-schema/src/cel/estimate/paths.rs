//! The ways from variables to data: names of fields, and what stands for all items, keys or values.
//!
//! Go keeps such a path in a slice, and slices that grow from the same one can share memory: a field
//! of an item may overwrite another one that was read before. Estimates depend on it, so paths share
//! their steps here as they do there.

/// A path. It is empty if a value does not come straight from a variable.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    memory: usize,
    length: usize,
}

#[derive(Debug, Default)]
pub(super) struct Paths<'a> {
    memories: Vec<Memory<'a>>,
}

#[derive(Debug)]
struct Memory<'a> {
    room: usize,
    steps: Vec<&'a str>,
}

impl<'a> Paths<'a> {
    fn store(&mut self, room: usize, steps: Vec<&'a str>) -> Path {
        let (memory, length) = (self.memories.len(), steps.len());
        self.memories.push(Memory { room, steps });
        Path { memory, length }
    }

    /// The path of a variable.
    pub(super) fn variable(&mut self, name: &'a str) -> Path {
        self.store(1, vec![name])
    }

    /// The steps of a path, as they are now.
    pub(super) fn steps(&self, path: Path) -> &[&'a str] {
        let memory = self.memories.get(path.memory);
        memory.and_then(|memory| memory.steps.get(..path.length)).unwrap_or_default()
    }

    /// A path with one step more. It takes the memory after the path if there is room, whoever uses
    /// it, and otherwise twice as much.
    pub(super) fn append(&mut self, path: Path, step: &'a str) -> Path {
        if path.length > 0
            && let Some(memory) = self.memories.get_mut(path.memory)
            && path.length < memory.room
        {
            match memory.steps.get_mut(path.length) {
                Some(used) => *used = step,
                None => memory.steps.push(step),
            }
            return Path { memory: path.memory, length: path.length + 1 };
        }
        let mut steps = self.steps(path).to_vec();
        steps.push(step);
        self.store((2 * path.length).max(1), steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_grow_from_the_same_one_can_share_their_end() {
        let mut paths = Paths::default();
        let own = paths.variable("self");
        let (items, others) = (paths.append(own, "items"), paths.append(own, "others"));
        assert_eq!(paths.steps(items), ["self", "items"]);
        assert_eq!(paths.steps(others), ["self", "others"]);
        let item = paths.append(items, "@items");
        let tags = paths.append(item, "tags");
        let key = paths.append(item, "key");
        assert_eq!(paths.steps(key), ["self", "items", "@items", "key"]);
        assert_eq!(paths.steps(tags), paths.steps(key));
        assert_eq!(paths.steps(Path::default()), [""; 0]);
        let part = paths.append(Path::default(), "part");
        assert_eq!(paths.steps(part), ["part"]);
    }
}

//! Finds cycles in a graph.

use std::collections::BTreeSet;

/// The strongly connected components with at least two nodes.
pub(super) fn find<'a>(edges: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let nodes: BTreeSet<&str> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for &node in &nodes {
        if found.iter().any(|cycle| cycle.contains(node)) {
            continue;
        }
        // The graphs have a few dozen nodes, so checking each pair is fast enough.
        let mut cycle: BTreeSet<&str> = reached(edges, node)
            .into_iter()
            .filter(|end| reached(edges, end).contains(node))
            .collect();
        cycle.insert(node);
        if cycle.len() > 1 {
            found.push(cycle);
        }
    }
    found
}

fn reached<'a>(edges: &BTreeSet<(&'a str, &'a str)>, start: &str) -> BTreeSet<&'a str> {
    let next = |node: &str| -> Vec<&'a str> {
        edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| *to).collect()
    };
    let (mut seen, mut left) = (BTreeSet::new(), next(start));
    while let Some(node) = left.pop() {
        if seen.insert(node) {
            left.extend(next(node));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(edges: &[(&'static str, &'static str)]) -> Vec<Vec<&'static str>> {
        let edges = edges.iter().copied().collect();
        find(&edges).into_iter().map(|cycle| cycle.into_iter().collect()).collect()
    }

    #[test]
    fn a_graph_without_a_way_back_has_none() {
        assert!(cycles(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]).is_empty());
    }

    #[test]
    fn each_cycle_is_reported_once_and_whole() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f"), ("f", "e")];
        assert_eq!(cycles(&edges), [vec!["a", "b", "c"], vec!["e", "f"]]);
    }
}

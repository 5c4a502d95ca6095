//! Labelled graphs as texts, and their Weisfeiler–Lehman features.
//!
//! A graph is JSON, `{"labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]]}`, or a list of labels
//! and one of edges, `C C O; 0-1 1-2`. Nodes count from 0, labels are texts or numbers, edges have
//! no direction.

use serde::Deserialize;

use super::counts::{Counts, hash};
use crate::{Error, Result, Told, data::Sequences};

/// Nodes with their labels, and for each the nodes it is joined with.
struct Graph {
    labels: Vec<u128>,
    neighbours: Vec<Vec<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    labels: Vec<Label>,
    edges: Vec<(usize, usize)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Text(String),
    Number(i64),
}

impl Graph {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let (labels, edges): (Vec<String>, Vec<(usize, usize)>) =
            if text.trim_start().starts_with('{') {
                let graph: Written = serde_json::from_str(text).map_err(|e| e.to_string())?;
                let label = |l: Label| match l {
                    Label::Text(text) => text,
                    Label::Number(number) => number.to_string(),
                };
                (graph.labels.into_iter().map(label).collect(), graph.edges)
            } else {
                let (labels, edges) = text.split_once(';').unwrap_or((text, ""));
                let edge = |e: &str| {
                    let ends = e
                        .split_once('-')
                        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                    let at = e.as_ptr() as usize - text.as_ptr() as usize + 1;
                    ends.ok_or_else(|| format!("`{e}` is no edge such as 0-1, at column {at}"))
                };
                let edges =
                    edges.split_whitespace().map(edge).collect::<std::result::Result<_, _>>()?;
                (labels.split_whitespace().map(String::from).collect(), edges)
            };
        let mut neighbours = vec![Vec::new(); labels.len()];
        for (a, b) in edges {
            if a.max(b) >= labels.len() {
                return Err(format!(
                    "an edge joins node {}, and there are {} nodes from 0",
                    a.max(b),
                    labels.len()
                ));
            }
            neighbours[a].push(b);
            if a != b {
                neighbours[b].push(a);
            }
        }
        let labels = labels.iter().map(|l| hash(l.bytes().map(u128::from))).collect();
        Ok(Self { labels, neighbours })
    }

    /// Labels of all nodes, refined `iterations` times: a node's next label is its own with those
    /// around it, sorted.
    fn features(mut self, iterations: u32) -> Vec<(u128, u32)> {
        let mut found: Vec<(u128, u32)> = self.labels.iter().map(|l| (*l, 1)).collect();
        for round in 1..=iterations {
            let refined = |v: usize| {
                let mut around: Vec<u128> =
                    self.neighbours[v].iter().map(|&w| self.labels[w]).collect();
                around.sort_unstable();
                hash([u128::from(round), self.labels[v]].into_iter().chain(around))
            };
            self.labels = (0..self.labels.len()).map(refined).collect();
            found.extend(self.labels.iter().map(|l| (*l, 1)));
        }
        found
    }
}

/// Are all of them graphs? Says which is not.
pub fn check(sequences: &Sequences, name: &str) -> Result<()> {
    for (row, text) in sequences.iter().enumerate() {
        if let Err(problem) = Graph::parse(text) {
            return Err(Error::data(
                format!("column `{name}`"),
                Told::row(row, format!("is no graph: {problem}")),
                "write graphs as {\"labels\": [\"C\", \"O\"], \"edges\": [[0, 1]]} or as C O; 0-1",
            ));
        }
    }
    Ok(())
}

/// How often each label occurs, over all rounds. What is no graph has none.
pub fn counts(sequences: &Sequences, iterations: u32) -> Counts {
    Counts::new(
        sequences
            .iter()
            .map(|text| Graph::parse(text).map_or_else(|_| Vec::new(), |g| g.features(iterations))),
    )
}

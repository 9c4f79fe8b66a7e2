//! Reports problems in an expression with their line and a caret below the location.

/// A problem, and where in the source it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) text: String,
}

/// More problems would not help, and every one repeats its line.
const MAX_TOLD: usize = 100;

/// The length at which a report ends, because every problem repeats its line.
const MAX_REPORT: usize = 2 << 20;

/// The problems in the order of the source.
pub(super) fn tell(source: &[char], mut problems: Vec<Problem>) -> String {
    let all = problems.len();
    problems.truncate(MAX_TOLD);
    problems.sort_by_key(|problem| problem.at);
    let mut told: Vec<String> = Vec::new();
    let mut length = 0;
    for problem in &problems {
        if length > MAX_REPORT {
            break;
        }
        let text = tell_one(source, problem);
        length += text.len();
        told.push(text);
    }
    let more = all - told.len();
    if more > 0 {
        told.push(format!("{more} more errors were truncated"));
    }
    told.join("\n")
}

fn tell_one(source: &[char], Problem { at, text }: &Problem) -> String {
    if source.is_empty() {
        return format!("ERROR: <input>:1:0: {text}");
    }
    let before = source.get(..*at).unwrap_or(source);
    let line = before.iter().filter(|c| **c == '\n').count() + 1;
    let start = before.iter().rposition(|c| *c == '\n').map_or(0, |newline| newline + 1);
    let column = before.len() - start;
    let rest = source.get(start..).unwrap_or_default();
    let shown: Vec<char> = rest
        .iter()
        .take_while(|c| **c != '\n')
        .map(|c| if *c == '\t' { ' ' } else { *c })
        .collect();
    let mut mark: String =
        shown.iter().take(column).map(|c| if c.is_ascii() { '.' } else { '．' }).collect();
    mark.push(match shown.get(column) {
        Some(c) if !c.is_ascii() => '＾',
        _ => '^',
    });
    let shown: String = shown.into_iter().collect();
    format!("ERROR: <input>:{line}:{}: {text}\n | {shown}\n | {mark}", column + 1)
}

//! The rules of a proxy, which can change while requests and watches are under way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Action;
use super::asked::Asked;

/// Names a rule, to remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

type Applies = Box<dyn Fn(&Asked) -> bool + Send + Sync>;

pub(super) struct Rule {
    id: RuleId,
    applies: Applies,
    action: Action,
    /// How many requests it is still for.
    left: Option<usize>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule")
            .field("id", &self.id)
            .field("action", &self.action)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Rule {
    pub(super) fn new(
        applies: impl Fn(&Asked) -> bool + Send + Sync + 'static,
        action: Action,
        left: Option<usize>,
    ) -> Self {
        Self { id: RuleId(0), applies: Box::new(applies), action, left }
    }
}

/// All rules, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Mutex<Vec<Rule>>,
    /// Counts changes, so that what is held back notices them.
    changes: watch::Sender<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { rules: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Rules {
    pub(super) fn add(&self, mut rule: Rule) -> RuleId {
        let mut rules = self.rules();
        self.changes.send_modify(|count| *count += 1);
        rule.id = RuleId(*self.changes.borrow());
        let id = rule.id;
        rules.push(rule);
        id
    }

    pub(super) fn remove(&self, id: RuleId) {
        self.rules().retain(|rule| rule.id != id);
        self.changes.send_modify(|count| *count += 1);
    }

    pub(super) fn clear(&self) {
        self.rules().clear();
        self.changes.send_modify(|count| *count += 1);
    }

    /// Notices changes of the rules from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What to do with a new request. It counts for the rule.
    pub(super) fn begin(&self, asked: &Asked) -> Option<Decision> {
        let mut rules = self.rules();
        let rule = rules.iter_mut().find(|rule| rule.left != Some(0) && (rule.applies)(asked))?;
        rule.left = rule.left.map(|left| left - 1);
        Some(Decision { rule: rule.id, action: rule.action.clone() })
    }

    /// What to do now with what the server says. `begun` is the decision about the request: it
    /// stays as long as its rule is there. Otherwise a rule without a limit may have been added
    /// since.
    pub(super) fn now(&self, asked: &Asked, begun: Option<&Decision>) -> Option<Action> {
        let rules = self.rules();
        let stays = rules.iter().any(|rule| begun.is_some_and(|begun| begun.rule == rule.id));
        match begun {
            Some(begun) if stays => Some(begun.action.clone()),
            _ => rules
                .iter()
                .find(|rule| rule.left.is_none() && (rule.applies)(asked))
                .map(|rule| rule.action.clone()),
        }
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a rule decided about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    rule: RuleId,
    pub(super) action: Action,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Asked {
        Asked::new("GET", "/api/v1/pods", "watch=true")
    }

    fn begin(rules: &Rules, asked: &Asked) -> Option<Action> {
        rules.begin(asked).map(|decision| decision.action)
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let rules = Rules::default();
        rules.add(Rule::new(|asked| asked.resource == "nodes", Action::Cut, None));
        let hold = rules.add(Rule::new(|asked| asked.watch, Action::Hold, None));
        rules.add(Rule::new(|_| true, Action::LoseAnswer, None));
        assert_eq!(begin(&rules, &pods()), Some(Action::Hold));
        rules.remove(hold);
        assert_eq!(begin(&rules, &pods()), Some(Action::LoseAnswer));
        rules.clear();
        assert_eq!(begin(&rules, &pods()), None);
    }

    #[test]
    fn a_rule_with_a_limit_is_for_so_many_requests() {
        let rules = Rules::default();
        rules.add(Rule::new(|_| true, Action::GONE, Some(2)));
        let answers = [(); 3].map(|()| begin(&rules, &pods()));
        assert_eq!(answers, [Some(Action::GONE), Some(Action::GONE), None]);
    }

    #[test]
    fn an_open_watch_follows_rules_as_they_come_and_go() {
        let rules = Rules::default();
        assert_eq!(rules.now(&pods(), None), None);
        let hold = rules.add(Rule::new(|_| true, Action::Hold, None));
        assert_eq!(rules.now(&pods(), None), Some(Action::Hold));
        rules.remove(hold);
        assert_eq!(rules.now(&pods(), None), None);

        let once = rules.add(Rule::new(|_| true, Action::Hold, Some(1)));
        let begun = rules.begin(&pods());
        assert_eq!(rules.now(&pods(), begun.as_ref()), Some(Action::Hold));
        assert_eq!(rules.now(&pods(), None), None, "another watch had begun before");
        rules.remove(once);
        assert_eq!(rules.now(&pods(), begun.as_ref()), None);
    }
}

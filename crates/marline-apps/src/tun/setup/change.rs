//! What is set up becomes something else while the tunnel goes on: networks come behind clients,
//! and go.

use super::super::remains::Remains;
use super::Setup;
use super::applied::Applied;
use super::step::Step;
use super::table::Made;

impl Setup {
    /// What is in this one and not in `other`.
    fn beside<'a>(&'a self, other: &'a Setup) -> impl Iterator<Item = &'a Step> {
        let is_new = |step: &&Step| !other.steps.contains(step);
        self.steps.iter().filter(is_new)
    }

    /// Logs what a person has to do and undo once this takes the place of `before`.
    pub(in super::super) fn show_beside(&self, before: &Setup) {
        let goes = |step: &&Step| !step.is_changed_by(&self.steps);
        let undone = before
            .beside(self)
            .filter(goes)
            .filter_map(Step::shown_undo);
        let done = self.beside(before).map(|step| match step {
            Step::Table(table) if step.is_changed_by(&before.steps) => {
                format!("`nft '{}'`", table.in_place())
            }
            _ => step.to_string(),
        });
        let commands: Vec<String> = undone.chain(done).collect();
        if !commands.is_empty() {
            tracing::info!(
                "tunnel {}: give these commands, too: {}",
                self.device,
                commands.join(" ")
            );
        }
    }
}

impl Applied {
    /// Does what `after` has and `before` had not, and undoes the reverse. What fails is logged:
    /// the tunnel goes on. `None` if this thread of it ended, with all undone.
    pub(in super::super) async fn become_another(
        mut self,
        before: &Setup,
        after: Setup,
    ) -> Option<Self> {
        let before = before.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let goes = |step: &&Step| !step.is_changed_by(&after.steps);
            let gone = before.beside(&after).filter(goes);
            gone.for_each(|step| step.undo(&mut self));
            for step in after.beside(&before) {
                if let Err(why) = step.take(&mut self, &mut Remains::default(), || false) {
                    tracing::error!("tunnel {}: {step}: {why}", after.device);
                    // Looked at from time to time, and made then.
                    if let Step::Table(table) = step {
                        let missing = Made::Shared(table.name.clone());
                        self.keep_table(table.clone(), missing);
                    }
                }
            }
            if before.forward != after.forward {
                self.keep_forward(after.forward);
            }
            self
        });
        changed.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    #[test]
    fn a_table_is_changed_in_one_step_and_never_away() {
        let table = |rules: &[&str]| {
            let chain = "chain TABLE postrouting { type nat hook postrouting priority srcnat ; }";
            let rules = rules
                .iter()
                .map(|rule| format!("rule TABLE postrouting {rule}"));
            Step::Table(Table {
                name: "inet t".to_owned(),
                parts: std::iter::once(chain.to_owned()).chain(rules).collect(),
            })
        };
        let (before, after) = (table(&["one"]), table(&["one", "two"]));
        assert!(before.is_changed_by(std::slice::from_ref(&after)));
        assert!(!before.is_changed_by(&[]));
        let Step::Table(after) = after else {
            unreachable!()
        };
        assert_eq!(
            after.in_place(),
            "flush table inet t; add chain inet t postrouting { type nat hook postrouting priority \
             srcnat ; }; add rule inet t postrouting one; add rule inet t postrouting two"
        );
    }
}

//! Links of a scenario replaced by others, such as recorded ones.

use marline_base::Duration;
use marline_link::LinkConfig;

use super::links::{DATAGRAM, OVERHEAD, is_name};
use super::plan::{LinkPlan, PathPlan, Scenario, Setting};

/// A link that takes the place of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLink {
    /// What it is called where it comes from.
    pub name: String,
    /// From clients to servers.
    pub up: LinkConfig,
    /// From servers to clients.
    pub down: LinkConfig,
    /// Round-trip time that its carrier's handshake measures, if it is known.
    pub handshake: Option<Duration>,
}

impl Scenario {
    /// Replaces the links, by their names where `links` has all of these, and else in order. What
    /// goes dark on the way still does. Where each link is a path of every session, there may be
    /// more or fewer than before.
    ///
    /// # Errors
    /// In words, what of the scenario does not go with other links.
    pub fn replace_links(&mut self, links: &[NewLink]) -> Result<(), String> {
        let names = |names: Vec<&str>| names.join(", ");
        let old = names(self.links.iter().map(|link| &*link.name).collect());
        let new = names(links.iter().map(|link| &*link.name).collect());
        if self.sessions.is_empty() {
            return Err("it has no sessions, whose links could be replaced".to_owned());
        }
        let sets = |change: &super::Change| matches!(change.setting, Setting::Link { .. });
        if self.changes.iter().any(sets) || !self.handovers.is_empty() {
            return Err(format!(
                "it changes its links ({old}) on the way: leave out changes with `set`, and handovers"
            ));
        }
        let by_name = |old: &LinkPlan| links.iter().find(|link| link.name == old.name);
        if self.links.iter().all(|link| by_name(link).is_some()) && self.links.len() == links.len()
        {
            for link in &mut self.links {
                let found = links.iter().find(|new| new.name == link.name);
                found.into_iter().for_each(|new| put(link, new));
            }
            return Ok(());
        }
        if self.links.len() == links.len() {
            for (link, new) in self.links.iter_mut().zip(links) {
                put(link, new);
            }
            return Ok(());
        }
        let plain = |paths: &[PathPlan]| {
            let usual = |(index, path): (usize, &PathPlan)| {
                path.link == index && path.cost == 0 && !path.standby && path.leaves.is_none()
            };
            paths.len() == self.links.len() && paths.iter().enumerate().all(usual)
        };
        let named = !self.changes.is_empty() || !self.cross.is_empty();
        if named || !self.sessions.iter().all(|session| plain(&session.paths)) {
            return Err(format!(
                "it says what happens to its links one by one ({old}), and these are not as many ({new})"
            ));
        }
        for session in &mut self.sessions {
            let Some(first) = session.paths.first().cloned() else {
                continue;
            };
            let path = |link| PathPlan {
                link,
                ..first.clone()
            };
            session.paths = (0..links.len()).map(path).collect();
        }
        let plan = |(index, link): (usize, &NewLink)| {
            let mut plan = LinkPlan {
                name: match is_name(&link.name) {
                    true => link.name.clone(),
                    false => format!("link-{index}"),
                },
                up: LinkConfig::default(),
                down: LinkConfig::default(),
                overhead: OVERHEAD,
                datagram: DATAGRAM,
                handshake: None,
            };
            put(&mut plan, link);
            plan
        };
        self.links = links.iter().enumerate().map(plan).collect();
        Ok(())
    }
}

fn put(link: &mut LinkPlan, new: &NewLink) {
    link.up = new.up.clone();
    link.down = new.down.clone();
    link.handshake = new.handshake;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Document;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "duration = \"2s\"\nschedulers = [\"edpf\"]\nlinks.a = {{ rate = \"6mbit\" }}\nlinks.b = {{ rate = \"1mbit\" }}\n\
             workloads = [{{ kind = \"constant\", rate = \"2mbit\" }}]\n{more}"
        );
        let document = Document::parse("test.toml", &text).unwrap();
        let mut cells = document.scenarios(&|_| Err("no files".into())).unwrap();
        cells.remove(0).1
    }

    fn new(name: &str, text: &str) -> NewLink {
        let link: LinkConfig = text.parse().unwrap();
        NewLink {
            name: name.to_owned(),
            up: link.clone(),
            down: link,
            handshake: None,
        }
    }

    fn shown(scenario: &Scenario) -> Vec<String> {
        let links = scenario.links.iter();
        links
            .map(|link| format!("{} {}", link.name, link.up))
            .collect()
    }

    #[test]
    fn links_are_replaced_by_name_or_else_in_order() {
        let mut named = scenario("");
        let links = [new("b", "delay=2ms"), new("a", "delay=1ms")];
        named.replace_links(&links).unwrap();
        assert_eq!(shown(&named), ["a delay=1ms", "b delay=2ms"]);
        let mut ordered = scenario("");
        let links = [new("wlan0", "delay=1ms"), new("wwan0", "delay=2ms")];
        ordered.replace_links(&links).unwrap();
        assert_eq!(shown(&ordered), ["a delay=1ms", "b delay=2ms"]);
    }

    #[test]
    fn more_or_fewer_links_are_more_or_fewer_paths() {
        let mut fewer = scenario("");
        fewer.replace_links(&[new("wlan0", "delay=1ms")]).unwrap();
        assert_eq!(shown(&fewer), ["wlan0 delay=1ms"]);
        assert_eq!(fewer.sessions[0].paths.len(), 1);
        let mut more = scenario("");
        let links = ["x", "y", "A strange name"].map(|name| new(name, "delay=1ms"));
        more.replace_links(&links).unwrap();
        assert_eq!(more.links[2].name, "link-2");
        let paths = more.sessions[0].paths.iter().map(|path| path.link);
        assert_eq!(paths.collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn what_does_not_go_with_other_links_is_said() {
        let one = [new("x", "delay=1ms")];
        let two = [new("x", "delay=1ms"), new("y", "delay=2ms")];
        let dark = "[[changes]]\nat = \"1s\"\nlink = \"a\"\ndark = true\n";
        assert_eq!(scenario(dark).replace_links(&two), Ok(()));
        let error = scenario(dark).replace_links(&one).unwrap_err();
        assert!(error.contains("(a, b)") && error.contains("(x)"), "{error}");
        let set = "[[changes]]\nat = \"1s\"\nlink = \"a\"\nset = { delay = \"9ms\" }\n";
        let error = scenario(set).replace_links(&two).unwrap_err();
        assert!(error.contains("`set`"), "{error}");
        let paths = "[[paths]]\nlink = \"a\"\n[[paths]]\nlink = \"b\"\nstandby = true\n";
        assert!(scenario(paths).replace_links(&one).is_err());
    }
}

//! Changes of the list's text, which leave its comments and its other lines as they are.

use marline::identity::{AllowedClient, PublicKey};
use marline_apps::grant::{Grant, pair, pairs};
use marline_base::text::Problem;

/// What becomes of a client's line.
#[derive(Debug, Default)]
pub(super) struct Change<'a> {
    /// `NAME=VALUE`, in place of all of that name; `NAME=` takes them away.
    pub(super) options: &'a [String],
    /// Another name.
    pub(super) name: Option<&'a str>,
}

/// The list with one more client.
pub(super) fn added(text: &str, key: PublicKey, change: &Change<'_>) -> Result<String, Problem> {
    let known = text
        .lines()
        .filter_map(client)
        .find(|client| client.key == key);
    if let Some(known) = known {
        let known = match known.name.as_str() {
            "" => "without a name",
            name => name,
        };
        return Err(
            Problem::new(format!("{key} is in the list already, {known}"))
                .hint("`marline clients change` gives it another name or other options"),
        );
    }
    appended(text, AllowedClient::new(key), change)
}

/// Is there a line of that client's?
#[cfg(unix)]
pub(super) fn is_listed(text: &str, key: PublicKey) -> bool {
    text.lines()
        .filter_map(client)
        .any(|client| client.key == key)
}

/// The list with `client`, changed, at its end.
pub(super) fn appended(
    text: &str,
    client: AllowedClient,
    change: &Change<'_>,
) -> Result<String, Problem> {
    let line = changed_line(client, change)?;
    let end = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    Ok(format!("{text}{end}{line}\n"))
}

/// The list with a client changed, and its key.
pub(super) fn changed(
    text: &str,
    who: &str,
    change: &Change<'_>,
) -> Result<(String, PublicKey), Problem> {
    let meant = meant(text, who)?;
    let key = meant.key;
    let new = changed_line(meant, change)?;
    let lines = text.lines().map(|line| match client(line) {
        Some(client) if client.key == key => format!("{new}\n"),
        _ => format!("{line}\n"),
    });
    Ok((lines.collect::<Vec<_>>().concat(), key))
}

/// The list without a client, and its key.
pub(super) fn revoked(text: &str, who: &str) -> Result<(String, PublicKey), Problem> {
    let key = meant(text, who)?.key;
    let left = text
        .lines()
        .filter(|line| client(line).is_none_or(|client| client.key != key));
    let left: Vec<String> = left.map(|line| format!("{line}\n")).collect();
    Ok((left.concat(), key))
}

/// The client of a line, if it has one.
fn client(line: &str) -> Option<AllowedClient> {
    let line = line.trim();
    match line.is_empty() || line.starts_with('#') {
        true => None,
        false => line.parse().ok(),
    }
}

/// The one client whose key or name this is.
fn meant(text: &str, who: &str) -> Result<AllowedClient, Problem> {
    let asked = who.parse::<PublicKey>().ok();
    let is_meant = |client: &AllowedClient| match asked {
        Some(asked) => client.key == asked,
        None => client.name == who,
    };
    let mut meant = text.lines().filter_map(client).filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(client), None) => Ok(client),
        (Some(_), Some(_)) => Err(Problem::new(format!("several clients are called `{who}`"))
            .hint("name it by its key: `marline clients list`")),
        (None, _) => Err(Problem::new(format!("`{who}` is not in the list"))
            .hint("`marline clients list` shows who is")),
    }
}

fn changed_line(mut client: AllowedClient, change: &Change<'_>) -> Result<String, Problem> {
    if let Some(name) = change.name {
        client.name = name.trim().to_owned();
    }
    if client.name.contains(char::is_control) {
        return Err(Problem::new(
            "a name has no line ends or other control characters",
        ));
    }
    client.options = options(&client, change.options)?;
    let AllowedClient {
        key, name, options, ..
    } = client;
    let line = format!("{options} {key} {name}");
    Ok(line.trim().to_owned())
}

/// A client's options with these in place of those of their names.
fn options(client: &AllowedClient, new: &[String]) -> Result<String, Problem> {
    let fault = |error: marline_apps::grant::GrantError| {
        let message = format!("option `{}`: {}", error.option, error.problem.message);
        match error.problem.hint {
            Some(hint) => Problem::new(message).hint(hint),
            None => Problem::new(message),
        }
    };
    // A comma or a blank would end the option or the line's first word.
    if let Some(odd) = new
        .iter()
        .find(|word| word.contains([',', ' ', '\t', '\n']))
    {
        return Err(Problem::new(format!("`{odd}` is no option"))
            .hint("write -o NAME=VALUE once for each option"));
    }
    let name_of = |word: &str| {
        word.split_once('=')
            .map_or(word, |(name, _)| name)
            .to_owned()
    };
    let names: Vec<String> = new.iter().map(|word| name_of(word)).collect();
    let kept = pairs(&client.options).map_err(fault)?.into_iter();
    let kept = kept.filter(|(name, _)| !names.iter().any(|new| new == name));
    let mut words: Vec<String> = kept
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for word in new {
        match word.strip_suffix('=') {
            // Its name is to be right all the same.
            Some(name) => pair(&format!("{name}=x")).map(drop).map_err(fault)?,
            None => words.push(word.clone()),
        }
    }
    let words = words.join(",");
    Grant::read(client.key, &words).map_err(fault)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    fn named(name: &str) -> Change<'_> {
        Change {
            name: Some(name),
            ..Change::default()
        }
    }

    #[test]
    fn a_list_keeps_its_comments_and_loses_whom_it_is_to_lose() {
        let text = format!("# ours\n{} van in Turin", key(1));
        let text = added(&text, key(2), &named("boat")).unwrap();
        assert_eq!(
            text,
            format!("# ours\n{} van in Turin\n{} boat\n", key(1), key(2))
        );
        let problem = added(&text, key(2), &named("ship")).unwrap_err();
        assert!(problem.message.contains("already, boat"), "{problem}");
        let (left, gone) = revoked(&text, "van in Turin").unwrap();
        assert_eq!((left, gone), (format!("# ours\n{} boat\n", key(2)), key(1)));
        let (left, _) = revoked(&text, &key(2).to_string()).unwrap();
        assert_eq!(left, format!("# ours\n{} van in Turin\n", key(1)));
        assert!(revoked(&text, "van").is_err() && revoked(&text, "# ours").is_err());
        let twice = added(&text, key(3), &named("boat")).unwrap();
        let problem = revoked(&twice, "boat").unwrap_err();
        assert!(problem.message.contains("several"), "{problem}");
        assert_eq!(
            added("", key(1), &named("")).unwrap(),
            format!("{}\n", key(1))
        );
        assert!(added("", key(1), &named("a\nmarline-pub:b")).is_err());
    }

    #[test]
    fn options_are_changed_one_by_one_and_wrong_ones_are_refused() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| word.to_string())
                .collect::<Vec<_>>()
        };
        let change = |text: &str, options: &[&str]| {
            let options = words(options);
            let change = Change {
                options: &options,
                name: None,
            };
            changed(text, "boat", &change).map(|(text, _)| text)
        };
        let first = format!("# ours\nup=5mbit {} boat\n", key(1));
        let text = change(
            &first,
            &["down=20mbit", "deny-target=*:25", "deny-target=*:26"],
        );
        let line = "up=5mbit,down=20mbit,deny-target=*:25,deny-target=*:26";
        assert_eq!(text.unwrap(), format!("# ours\n{line} {} boat\n", key(1)));
        let text = change(&first, &["up="]).unwrap();
        assert_eq!(text, format!("# ours\n{} boat\n", key(1)));
        for (option, reason) in [
            ("up=fast", "option `up`"),
            ("dwon=1mbit", "no option `dwon`"),
            ("dwon=", "no option `dwon`"),
            ("down", "no value"),
            ("up=1mbit,down=1mbit", "is no option"),
            ("up=1 mbit", "is no option"),
        ] {
            let problem = change(&first, &[option]).expect_err(option);
            assert!(problem.message.contains(reason), "{option}: {problem}");
        }
        let (text, _) = changed(&first, "boat", &named("ship")).unwrap();
        assert_eq!(text, format!("# ours\nup=5mbit {} ship\n", key(1)));
    }
}

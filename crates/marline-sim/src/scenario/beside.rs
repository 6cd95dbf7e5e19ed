//! What the kinds of models say alike: keys that have no place beside them, and variants that they
//! do not know.

use std::str::FromStr;

use super::mistake::nearest;
use super::reader::Reader;

/// Each of these `keys` of the scenario is a mistake beside the table `model`.
pub(super) fn refuse_beside(top: &Reader<'_>, keys: &[&'static str], model: &str) {
    for key in keys {
        if let Some(node) = top.get(key) {
            let message = format!("has no place beside [{model}]");
            let mend =
                format!("remove it; what is sent and how links are used is said under [{model}]");
            top.wrong(key, node, message, mend);
        }
    }
}

/// The variant's own name, or what is wrong with it and the hint.
pub(super) fn variant<V: FromStr + ToString>(
    name: &str,
    names: &[&str],
    model: &str,
) -> Result<String, (String, String)> {
    match name.parse::<V>() {
        Ok(variant) => Ok(variant.to_string()),
        Err(_) => {
            let message = format!("[{model}] knows no `{name}`");
            Err((message, nearest(name, names, "variant")))
        }
    }
}

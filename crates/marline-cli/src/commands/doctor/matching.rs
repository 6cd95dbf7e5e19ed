//! Paths that say what fits instead of a name, as the interfaces that they are now.

use marline::Path;
use marline::carrier::Bind;
use marline::interfaces::Sysfs;
use std::collections::BTreeSet;

/// The paths, each that says what fits as one for every interface that fits and that no other path
/// has; as it is written where there is none.
pub(super) fn expand(paths: &[Path], sysfs: &Sysfs) -> Vec<Path> {
    let named = paths.iter().filter_map(|path| match &path.local {
        Bind::Interface(name) => Some(name.clone()),
        _ => None,
    });
    let mut taken: BTreeSet<String> = named.collect();
    let devices = sysfs.devices();
    let mut found = Vec::new();
    for path in paths {
        let Bind::Matching(selector) = &path.local else {
            found.push(path.clone());
            continue;
        };
        let fits = devices.iter().filter(|device| selector.fits(device));
        let fits = fits.filter(|device| taken.insert(device.name.clone()));
        let mut count = 0;
        for device in fits {
            count += 1;
            let name = match count {
                1 => path.name.clone(),
                _ => format!("{}#{count}", path.name),
            };
            found.push(Path {
                local: Bind::Interface(device.name.clone()),
                name,
                ..path.clone()
            });
        }
        if count == 0 {
            found.push(path.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_that_fits_is_a_path_and_what_fits_none_stays() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["wwan0", "wwan2", "eth0"] {
            std::fs::create_dir_all(folder.path().join("class/net").join(name)).unwrap();
        }
        let paths: Vec<Path> = ["wwan0,name=sim", "wwan*,cost=2", "usb*"]
            .map(|text| text.parse().unwrap())
            .into();
        let found = expand(&paths, &Sysfs::at(folder.path()));
        let found: Vec<String> = found.iter().map(Path::to_string).collect();
        assert_eq!(found, ["wwan0,name=sim", "wwan2,cost=2,name=wwan*", "usb*"]);
    }
}

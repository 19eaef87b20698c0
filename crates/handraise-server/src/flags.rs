//! The runtime flags: an operator's setting in the inbox wins over configuration (inbox.md, "Flags").

use std::collections::BTreeMap;

use handraise_api::{
    access::{Flag, FlagSource},
    frame,
};
use tokio::sync::watch;

use crate::settings::{FlagSetting, FlagSettings};

const ACP_ELICITATION: &str = "features.acpElicitation";
const ELICITATION: &str = "elicitation";
const ADAPTIVE_PROFILES: &str = "profiles.adaptive";

/// The flags that operators are offered: those that some holder of today reads. The others go to holders as the
/// configuration has them, and a switch for them would do nothing.
pub(crate) const OFFERED: [&str; 2] = [ACP_ELICITATION, ELICITATION];

#[derive(Debug)]
pub(crate) struct RuntimeFlags {
    configured: FlagSettings,
    set: watch::Sender<BTreeMap<String, bool>>,
}

impl RuntimeFlags {
    pub(crate) fn new(configured: FlagSettings, set: BTreeMap<String, bool>) -> Self {
        Self { configured, set: watch::Sender::new(set) }
    }

    /// The offered flags as they are in force.
    pub(crate) fn all(&self) -> Vec<Flag> {
        OFFERED.into_iter().filter_map(|name| self.get(name)).collect()
    }

    /// One flag as it is in force; `None`: there is none of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Flag> {
        let configured = match name {
            ACP_ELICITATION => self.configured.acp_elicitation,
            ELICITATION => self.configured.elicitation,
            ADAPTIVE_PROFILES => self.configured.adaptive_profiles,
            _ => return None,
        };
        let set = self.set.borrow().get(name).copied();
        let FlagSetting { value, source } = match set {
            // Off in either place wins: a host that switched questions off is not overruled from a browser.
            Some(true) if name == ELICITATION && !configured.value => configured,
            Some(value) => FlagSetting { value, source: FlagSource::Setting },
            None => configured,
        };
        Some(Flag { name: name.to_owned(), value, source })
    }

    /// Notes what an operator set.
    pub(crate) fn note(&self, name: &str, value: Option<bool>) {
        self.set.send_modify(|set| {
            match value {
                Some(value) => set.insert(name.to_owned(), value),
                None => set.remove(name),
            };
        });
    }

    /// Changes whenever an operator sets one.
    pub(crate) fn watch(&self) -> watch::Receiver<BTreeMap<String, bool>> {
        self.set.subscribe()
    }

    /// The flags as holders are told (F5).
    pub(crate) fn for_holders(&self) -> frame::Flags {
        let on = |name| self.get(name).is_some_and(|flag| flag.value);
        frame::Flags {
            acp_elicitation: on(ACP_ELICITATION),
            elicitation: on(ELICITATION),
            adaptive_profiles: on(ADAPTIVE_PROFILES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_wins_and_is_taken_back() {
        let flags = RuntimeFlags::new(FlagSettings::default(), BTreeMap::new());
        let value = |name| flags.get(name).map(|flag| (flag.value, flag.source));
        assert_eq!(value(ACP_ELICITATION), Some((true, FlagSource::Default)));
        flags.note(ACP_ELICITATION, Some(false));
        assert_eq!(value(ACP_ELICITATION), Some((false, FlagSource::Setting)));
        assert!(!flags.for_holders().acp_elicitation);
        flags.note(ACP_ELICITATION, None);
        assert_eq!(value(ACP_ELICITATION), Some((true, FlagSource::Default)));
        assert_eq!(value("unknown"), None);
    }

    #[test]
    fn elicitation_off_in_either_place_wins() {
        let off = FlagSetting { value: false, source: FlagSource::Environment };
        let configured = FlagSettings { elicitation: off, ..FlagSettings::default() };
        let flags = RuntimeFlags::new(configured, BTreeMap::from([(ELICITATION.to_owned(), true)]));
        let flag = flags.get(ELICITATION).unwrap();
        assert_eq!((flag.value, flag.source), (false, FlagSource::Environment));
    }
}

//! Tests of precedence and of what start-up refuses.

use proptest::prelude::*;

use super::*;
use crate::registry::SETTINGS;

fn file(text: &str) -> ConfigFile {
    ConfigFile::parse("/h.toml", text).unwrap()
}

fn with_environment(variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    load(&Flags::default(), &variables.iter().copied().collect(), None)
}

#[test]
fn nothing_given_yields_the_contract_s_defaults() {
    let settings = with_environment(&[("HOME", "/home/ada")]).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:7345".parse().unwrap());
    assert_eq!(settings.data_dir().unwrap(), Path::new("/home/ada/.local/share/handraise"));
    assert_eq!(settings.answer_timeout, Duration::from_secs(55 * 60));
    assert_eq!(settings.idle_timeout, Duration::from_secs(3600));
    assert!(settings.acp_elicitation.value);
    assert_eq!(settings.acp_elicitation.origin, Origin::Default);
    assert!(settings.elicitation.value);
    assert!(!settings.adaptive_profiles.value);
    assert_eq!(settings.limits.open_asks, 1000);
    assert_eq!(settings.question_order, QuestionOrder::Wire);
    assert!(settings.warnings.is_empty());
}

#[test]
fn without_a_home_the_data_directory_must_be_named() {
    let error = with_environment(&[]).unwrap().data_dir().unwrap_err().to_string();
    assert_eq!(error, "no data directory: HOME is not set; give --data-dir DIR or set HANDRAISE_DATA_DIR");
}

#[test]
fn flag_wins_over_environment_over_file_over_default() {
    let file = file("listen = '127.0.0.1:3'");
    let environment = Environment::from_iter([("HANDRAISE_LISTEN", "127.0.0.1:2")]);
    let flags = Flags::default().with(&registry::LISTEN, Some("127.0.0.1:1"));
    let port = |flags: &Flags, environment: &Environment, file: Option<&ConfigFile>| {
        load(flags, environment, file).unwrap().listen.port()
    };
    let none = (Flags::default(), Environment::default());
    assert_eq!(port(&flags, &environment, Some(&file)), 1);
    assert_eq!(port(&none.0, &environment, Some(&file)), 2);
    assert_eq!(port(&none.0, &none.1, Some(&file)), 3);
    assert_eq!(port(&none.0, &none.1, None), 7345);
}

#[test]
fn our_names_win_over_the_seeds_names_and_the_derived_name_over_both() {
    let theirs = ("KANDEV_ELICITATION_ANSWER_TIMEOUT", "3m");
    let ours = ("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "2m");
    let derived = ("HANDRAISE_ACP__ANSWER_TIMEOUT", "1m");
    let minutes =
        |variables: &[(&str, &str)]| with_environment(variables).unwrap().answer_timeout.as_secs() / 60;
    assert_eq!(minutes(&[theirs]), 3);
    assert_eq!(minutes(&[theirs, ours]), 2);
    assert_eq!(minutes(&[theirs, ours, derived]), 1);
    assert!(!with_environment(&[("AUTOMOBILE_ELICITATION", "off")]).unwrap().elicitation.value);
    assert!(
        !with_environment(&[("KANDEV_FEATURES_ACP_ELICITATION", "false")]).unwrap().acp_elicitation.value
    );
}

#[track_caller]
fn check_error(variables: &[(&str, &str)], expected: &str) {
    assert_eq!(with_environment(variables).unwrap_err().to_string(), expected);
}

#[test]
fn f13a_start_up_refuses_an_answer_timeout_that_is_not_below_the_idle_timeout() {
    let expected = |answer: &str, answer_from: &str, idle: &str, idle_from: &str| {
        format!(
            "the answer timeout ({answer}, from {answer_from}) must be shorter than the idle timeout ({idle}, from \
             {idle_from}), otherwise an agent is stopped before its question expires; lower \
             acp.answer_timeout (HANDRAISE_ELICITATION_ANSWER_TIMEOUT) or raise acp.idle_timeout \
             (HANDRAISE_ACP_IDLE_TIMEOUT)"
        )
    };
    check_error(
        &[("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "60m")],
        &expected("1h", "HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "1h", "the default"),
    );
    check_error(
        &[("KANDEV_ACP_IDLE_TIMEOUT", "30m")],
        &expected("55m", "the default", "30m", "KANDEV_ACP_IDLE_TIMEOUT"),
    );
    assert!(with_environment(&[("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "59m59s999ms")]).is_ok());
}

#[test]
fn an_error_names_the_thing_the_value_and_the_remedy() {
    check_error(
        &[("HANDRAISE_ACP_IDLE_TIMEOUT", "3600")],
        "HANDRAISE_ACP_IDLE_TIMEOUT is \"3600\", but a duration needs a unit: write 250ms, 20s, 55m, 1h30m or 7d",
    );
    check_error(
        &[("HANDRAISE_LISTEN", "localhost")],
        "HANDRAISE_LISTEN is \"localhost\", but it takes an IP address and a port, such as 127.0.0.1:7345 or [::1]:7345",
    );
    check_error(
        &[("HANDRAISE_ELICITATION", "maybe")],
        "HANDRAISE_ELICITATION is \"maybe\", but it takes on or off",
    );
    check_error(
        &[("HANDRAISE_LIMITS__OPEN_ASKS", "0")],
        "HANDRAISE_LIMITS__OPEN_ASKS is \"0\", but it takes a whole number from 1 to 1000000",
    );
    let file = file("[acp]\nidle_timeout = 3600");
    let error = load(&Flags::default(), &Environment::default(), Some(&file)).unwrap_err().to_string();
    assert_eq!(
        error,
        "'acp.idle_timeout' in /h.toml:2 is 3600, but a duration needs a unit: write 250ms, 20s, 55m, 1h30m or 7d"
    );
}

#[test]
fn a_wrong_value_is_an_error_even_while_another_wins() {
    let file = file("listen = 'nowhere'");
    let flags = Flags::default().with(&registry::LISTEN, Some("127.0.0.1:1"));
    assert!(load(&flags, &Environment::default(), Some(&file)).is_err());
}

#[test]
fn an_error_about_a_secret_hides_it() {
    let file = file("token = 5");
    let error = load(&Flags::default(), &Environment::default(), Some(&file)).unwrap_err().to_string();
    assert_eq!(error, "'token' in /h.toml:1 is (hidden), but it takes text in quotes");
    let settings = with_environment(&[("HANDRAISE_TOKEN", "hunter2")]).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn a_variable_that_changes_nothing_is_pointed_out() {
    let variables =
        [("HANDRAISE_INBX", "x"), ("HANDRAISE_ASK_PARK_TTL", "1m"), ("HANDRAISE_PUBLIC_URL", "x")];
    let nothing = |name: &str| {
        format!(
            "the environment variable {name} is no setting of this version and changes nothing; \
             docs/configuration.md lists the settings"
        )
    };
    assert_eq!(
        with_environment(&variables).unwrap().warnings,
        [
            nothing("HANDRAISE_ASK_PARK_TTL"),
            "the environment variable HANDRAISE_INBX is no setting; did you mean HANDRAISE_INBOX?".to_owned(),
            nothing("HANDRAISE_PUBLIC_URL"),
        ]
    );
}

#[test]
fn a_file_s_paths_have_no_working_directory() {
    let home = Environment::from_iter([("HOME", "/home/ada")]);
    let data_dir =
        |text: &str| load(&Flags::default(), &home, Some(&file(text))).map(|s| s.data_dir.unwrap());
    assert_eq!(data_dir("data_dir = '~/h'").unwrap(), Path::new("/home/ada/h"));
    assert!(data_dir("data_dir = 'h'").unwrap_err().to_string().contains("absolute path"));
}

proptest! {
    #[test]
    fn any_environment_is_settings_or_an_error(
        values in proptest::collection::btree_map(
            prop::sample::select(SETTINGS.iter().flat_map(|s| s.variables()).collect::<Vec<_>>()),
            "\\PC{0,12}|[0-9a-z.:]{0,12}|on|off|5m",
            0..6,
        )
    ) {
        let environment = values.into_iter().collect();
        if let Ok(settings) = load(&Flags::default(), &environment, None) {
            prop_assert!(settings.answer_timeout < settings.idle_timeout);
        }
    }
}

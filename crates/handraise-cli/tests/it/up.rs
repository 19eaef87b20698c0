//! `handraise up`, `token`, `doctor`, `demo`: the inbox as its operator has it.

use std::{
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    Collected, Ending, Home, Up, binary, call, pick, say, stderr, terminate, wait_for, wait_for_link,
};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_inbox_is_ready_when_it_has_printed_its_link() {
    let home = Home::new();
    let up = Up::start(&home);
    assert_eq!(call(&up.url, "GET", "/readyz", None, None).status, 200);
    assert_eq!(call(&up.url, "GET", "/healthz", None, None).status, 200);
    assert_eq!(mode(&home.data_dir()), 0o700);
    for file in ["inbox.json", "inbox.sock"] {
        assert_eq!(mode(&home.data_dir().join(file)), 0o600, "{file}");
    }
    up.stop();
}

#[test]
fn s11_s33_secrets_are_in_no_log_and_no_argument() {
    let home = Home::new();
    let up = Up::start_with(&home, &["--log", "trace"], &[]);
    up.get("/asks");
    let arguments = std::fs::read(format!("/proc/{}/cmdline", up.child.id())).unwrap();
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(home.data_dir().join("inbox.json")).unwrap()).unwrap();
    let log = up.log.clone();
    let secrets = [up.secret.clone(), up.operator.clone(), file["holder_token"].as_str().unwrap().to_owned()];
    up.stop();
    for secret in secrets {
        assert!(!log.text().contains(&secret) && !arguments.contains(&secret));
    }
}

#[test]
fn why_an_agent_of_the_inbox_failed_is_in_its_session_and_which_one_in_the_log() {
    for log_format in ["text", "json"] {
        an_agent_of_the_inbox_fails(log_format);
    }
}

fn an_agent_of_the_inbox_fails(log_format: &str) {
    let home = Home::new();
    home.write_config(&format!(
        "log_format = '{log_format}'\n\
         [[agent]]\nid = 'broken'\ncommand = ['sh', '-c', 'echo no such model >&2; exit 3']\ncwd = '{}'\n\
         [[agent]]\nid = 'gone'\ncommand = ['/not/there/agent']\n",
        home.work().display()
    ));
    let up = Up::start(&home);
    let admin = home.token("admin");
    let start = |body: Value| call(&up.url, "POST", "/api/v1/sessions", Some(&admin), Some(&body));
    let started = start(json!({"agent": "broken", "prompt": "do it"}));
    assert_eq!(started.status, 201, "{started:?}");
    let path = format!("/sessions/{}", started.body["id"].as_str().unwrap());
    let messages = wait_for("what became of it", || {
        let messages = up.get(&format!("{path}/messages"))["messages"].clone();
        (messages.as_array()?.len() == 2).then_some(messages)
    });
    wait_for("the end of the session", || (up.get(&path)["state"] == "ended").then_some(()));
    assert_eq!(messages[0]["text"], "do it");
    let notice = messages[1]["text"].as_str().unwrap().to_owned();
    for word in ["broken", "\"sh\"", "exit status 3", "no such model", "has not taken the prompt"] {
        assert!(notice.contains(word), "{word}: {notice}");
    }
    assert!(!notice.contains("timestamp") && !notice.contains("its process ended"), "{notice}");
    let warned = |word: &str| up.log.text().lines().any(|line| line.contains("WARN") && line.contains(word));
    wait_for("the warning", || warned("exit status 3").then_some(()));
    assert!(!up.log.text().contains("no such model"), "what an agent says is not logged: {}", up.log.text());

    let refused = start(json!({"agent": "gone", "cwd": home.work()}));
    let message = refused.body["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.status == 400 && message.contains("/not/there/agent"), "{message}");
    wait_for("the other warning", || warned("/not/there/agent").then_some(()));
    up.stop();
}

#[test]
fn an_inbox_that_can_write_nothing_is_not_ready_until_it_can_and_says_why() {
    let home = Home::new();
    // A limit on the size of files stands in for a full disk; what goes beyond is an error, and no signal.
    let words =
        ["-c", "trap '' XFSZ; exec \"$@\"", "sh", binary(), "up", "--no-open", "--listen", "127.0.0.1:0"];
    let mut command = Command::new("sh");
    command.args(words).envs(home.handraise(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = Collected::from(child.stderr.take().unwrap());
    let printed = Collected::from(child.stdout.take().unwrap());
    let (url, _) = wait_for_link(&printed, &mut child, &log);
    let up = Ending(child);
    let admin = home.token("admin");
    let limit = |bytes| {
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        let pid = rustix::process::Pid::from_raw(i32::try_from(up.0.id()).unwrap());
        rustix::process::prlimit(pid, rustix::process::Resource::Fsize, limit).unwrap();
    };
    let create =
        || call(&url, "POST", "/api/v1/tokens", Some(&admin), Some(&json!({"scope": "viewer", "name": "n"})));
    assert_eq!(create().status, 201);
    limit(Some(0));
    let refused = create();
    let message = refused.body["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.status == 500 && message.contains("disk"), "{refused:?}");
    assert_eq!(call(&url, "GET", "/readyz", None, None).status, 503);
    let told = |word: &str| log.text().lines().any(|line| line.contains("ERROR") && line.contains(word));
    wait_for("the file's name in the log", || told("handraise.db").then_some(()));
    // The sweep finds it as it was.
    wait_for("another try", || told("neither asks nor answers").then_some(()));
    assert_eq!(call(&url, "GET", "/readyz", None, None).status, 503);
    limit(None);
    wait_for("an inbox that is ready", || {
        (call(&url, "GET", "/readyz", None, None).status == 200).then_some(())
    });
    assert_eq!(create().status, 201);
}

#[test]
fn a_second_inbox_in_the_same_directory_is_refused() {
    let home = Home::new();
    let _up = Up::start(&home);
    let second = home.run(&["up", "--no-open", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("--data-dir"), "{}", stderr(&second));
}

#[test]
fn s10_listening_beyond_loopback_needs_a_word() {
    let output = Home::new().run(&["up", "--no-open", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--insecure-behind-proxy"), "{}", stderr(&output));
}

#[test]
fn a_database_that_this_version_does_not_have_is_refused_without_its_password() {
    let output = Home::new().run(&["up", "--no-open", "--database", "postgres://me:hunter2@db/handraise"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("--database") && text.contains("SQLite") && !text.contains("hunter2"), "{text}");
}

#[test]
fn tokens_are_made_listed_and_revoked_with_and_without_a_running_inbox() {
    let home = Home::new();
    let made_before =
        home.stdout(&["token", "create", "--scope", "viewer", "--name", "early", "--expires", "1d"]);
    assert_eq!(made_before.lines().count(), 1, "the token alone: {made_before:?}");
    let up = Up::start(&home);
    let status = |token: &str| call(&up.url, "GET", "/api/v1/asks", Some(token.trim_end()), None).status;
    assert_eq!(status(&made_before), 200, "made without an inbox, good in one");
    let list =
        |home: &Home| -> Value { serde_json::from_str(&home.stdout(&["token", "list", "--json"])).unwrap() };
    let id = |list: &Value, name: &str| {
        let tokens = list["tokens"].as_array().unwrap();
        tokens.iter().find(|token| token["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let early = id(&list(&home), "early");
    home.stdout(&["token", "revoke", &early]);
    assert_eq!(status(&made_before), 401);
    let again = home.run(&["token", "revoke", &early]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("token list"), "{}", stderr(&again));
    assert!(!home.stdout(&["token", "list"]).contains(made_before.trim_end()), "secrets are not kept");
    let tests = id(&list(&home), "tests");
    up.stop();
    home.stdout(&["token", "revoke", &tests]);
    assert!(!home.stdout(&["token", "list"]).contains("tests"));
}

#[test]
fn s34_a_scope_does_what_it_says() {
    let home = Home::new();
    let up = Up::start(&home);
    let token = |scope: &str| home.stdout(&["token", "create", "--scope", scope]).trim_end().to_owned();
    let status = |token: &str, method: &str, path: &str, body: &Value| {
        call(&up.url, method, &format!("/api/v1{path}"), Some(token), Some(body)).status
    };
    let (viewer, holder) = (token("viewer"), token("holder"));
    assert_eq!(status(&viewer, "GET", "/asks", &json!({})), 200);
    assert_eq!(status(&viewer, "POST", "/asks/x/answer", &json!({"answers": []})), 403);
    assert_eq!(status(&up.operator, "GET", "/tokens", &json!({})), 403);
    assert_eq!(status(&holder, "GET", "/asks", &json!({})), 403);
}

#[test]
fn doctor_says_what_is_in_order_and_which_boundary_there_is() {
    let home = Home::new();
    let before = home.stdout(&["doctor"]);
    assert!(
        before.contains("is not there yet") && before.contains("boundary: none on this machine"),
        "{before}"
    );
    let up = Up::start(&home);
    let running = home.stdout(&["doctor"]);
    assert!(running.contains(&format!("inbox: runs at {}", up.url)), "{running}");
    up.stop();
    let stopped = home.stdout(&["doctor"]);
    assert!(stopped.contains("opens") && stopped.contains("not running"), "{stopped}");
    std::fs::set_permissions(home.data_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let open = home.run(&["doctor"]);
    assert_eq!(open.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&open.stdout).contains("chmod 700"));
}

#[test]
fn s5_doctor_says_whether_guarded_calls_can_run() {
    let home = Home::new();
    home.stdout(&["token", "list"]);
    home.write_config("[[confirm]]\ntools = ['tapOn']\n");
    let (outer, spent) = (home.data_dir().join("confirm"), home.data_dir().join("confirm/spent"));
    let says = |variables: &[(&str, &str)], is_fine: bool, words: &str| {
        let output = home.handraise(&["doctor"]).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() == is_fine && said.contains(words), "{variables:?}: {said}");
    };
    says(&[], true, &format!("note   confirmations: {} is not there yet", spent.display()));
    assert!(!outer.exists(), "nothing is made");
    says(
        &[("MCP_DATA_DIR", "/dev/null")],
        false,
        "WRONG  confirmations: the folder /dev/null/.mcp-confirm/spent",
    );
    let close = |folder: &Path, mode| {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir_all(&spent).unwrap();
    close(&outer, 0o700);
    close(&spent, 0o755);
    says(&[], false, "is open to others; close it with chmod 700; guarded calls do not run");
    close(&spent, 0o500);
    says(&[], false, "WRONG  confirmations: ");
    close(&spent, 0o700);
    says(&[], true, &format!("ok     confirmations: {} keeps what is spent", spent.display()));
}

#[test]
fn s5_doctor_says_where_the_folder_of_spent_confirmations_cannot_be_made() {
    let home = Home::new();
    home.stdout(&["token", "list"]);
    home.write_config("[[confirm]]\ntools = ['tapOn']\n");
    let outer = home.data_dir().join("confirm");
    std::fs::create_dir(&outer).unwrap();
    let mut doctor = home.handraise(&["doctor"]);
    if rustix::process::geteuid().is_root() {
        // To whom no mode says anything.
        const NOBODY: u32 = 65_534;
        let owned = Command::new("chown").arg("-R").arg(NOBODY.to_string()).arg(home.path()).status();
        assert!(owned.unwrap().success());
        doctor.uid(NOBODY);
    }
    let mut says = |mode, words: &str| {
        std::fs::set_permissions(&outer, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = doctor.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(words), "{mode:o}: {said}{}", stderr(&output));
    };
    let (spent, outer) = (home.data_dir().join("confirm/spent"), outer.display());
    says(0o700, &format!("note   confirmations: {} is not there yet", spent.display()));
    says(
        0o500,
        &format!("{} cannot be made: nothing can be made in {outer}; guarded calls", spent.display()),
    );
}

#[test]
fn doctor_finds_what_the_next_command_would_not_start_with() {
    const CONFIRM: &str = "[[confirm]]\ntools = ['tapOn']\n";
    let home = Home::new();
    home.stdout(&["token", "list"]);
    let wrong = |text: &str, variables: &[(&str, &str)], words: &str| {
        home.write_config(text);
        let output = home.handraise(&["doctor"]).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text:?}, {variables:?}: {said}");
        assert!(said.contains("WRONG") && said.contains(words), "{text:?}, {variables:?}: {said}");
        assert!(!said.contains("in order"), "{said}");
    };
    wrong("state_secret = 'short'\n", &[], "cannot be used: key 1");
    wrong(&format!("{CONFIRM}target = 'draftId'\n"), &[], "is no JSON pointer");
    wrong("[upstream]\nheaders = { 'X Team' = 'a' }\n", &[], "is no name of a header");
    wrong("public_name = 'https://inbox.example.com'\n", &[], "by which nobody is ever called");
    wrong("[mcp]\nallowed_hosts = ['mcp.example.com:443']\n", &[], "by which nobody is ever called");
    wrong(CONFIRM, &[("MCP_CONFIRM_TTL_SECONDS", "10m")], "MCP_CONFIRM_TTL_SECONDS is");
    home.write_config("");
    let output = home.handraise(&["doctor"]).env("HANDRAISE_ASK_PARK_TTL", "1m").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success()
            && said.contains("note   settings: the environment variable HANDRAISE_ASK_PARK_TTL"),
        "{said}"
    );
    std::fs::set_permissions(home.data_dir(), std::fs::Permissions::from_mode(0o500)).unwrap();
    let output = home.run(&["doctor"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("has mode 500"), "{said}");
    std::fs::set_permissions(home.data_dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(home.run(&["doctor"]).status.success());
}

#[test]
fn the_demo_asks_five_forms_in_one_turn_a_script_s_question_and_a_tool_s_and_leaves_nothing_behind() {
    let home = Home::new();
    let folders = home.path().join("tmp");
    std::fs::create_dir(&folders).unwrap();
    let child = home
        .handraise(&["demo", "--no-open", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", &folders)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut demo = Ending(child);
    let printed = Collected::from(demo.0.stdout.take().unwrap());
    let log = Collected::from(demo.0.stderr.take().unwrap());
    let (url, secret) = wait_for_link(&printed, &mut demo.0, &log);
    let url = url.as_str();
    let page = call(url, "POST", "/api/v1/login", None, Some(&json!({"secret": secret, "name": "Ada"})));
    let page = page.body["token"].as_str().unwrap().to_owned();
    let get = |path: &str| call(url, "GET", &format!("/api/v1{path}"), Some(&page), None).body;
    let email = json!({"answers": [
        {"question_id": "email", "custom_text": "ada@example.org"},
        {"question_id": "public", "selected_options": ["true"]},
    ]});
    let answers = [
        pick("question_0", &["SQLite"]),
        pick("question_1", &["dev", "prod"]),
        pick("choice", &["retry_fallback"]),
        say("apiKey", "anything"),
        email,
    ];
    let next = |source: &str| {
        let path = format!("/asks?state=open&source={source}");
        wait_for("the next ask", || get(&path)["asks"].get(0).cloned())
    };
    for answer in answers {
        let ask = next("elicitation");
        let path = format!("/api/v1/asks/{}/answer", ask["id"].as_str().unwrap());
        let answer = call(url, "POST", &path, Some(&page), Some(&answer));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let session = wait_for("the end of the turn", || {
        let session = get("/sessions")["sessions"][0].clone();
        (session["state"] == "idle").then_some(session)
    });
    let transcript = format!("/sessions/{}/messages", session["id"].as_str().unwrap());
    let ends = wait_for("the end of the turn in the transcript", || {
        let messages = get(&transcript)["messages"].clone();
        let ends = messages.as_array()?.iter().filter(|message| message["type"] == "turn_ended").count();
        (ends > 0).then_some(ends)
    });
    assert_eq!(ends, 1, "five forms, one turn");
    let path = format!("/api/v1/asks/{}/answer", next("script")["id"].as_str().unwrap());
    assert_eq!(call(url, "POST", &path, Some(&page), Some(&pick("answer", &["no"]))).status, 200);
    wait_for("the end of the script", || log.text().contains("exits with 6").then_some(()));
    let refusal = next("refusal");
    assert_eq!(refusal["questions"][0]["prompt"], "Which device should tapOn use?", "{refusal}");
    let path = format!("/api/v1/asks/{}/answer", refusal["id"].as_str().unwrap());
    assert_eq!(call(url, "POST", &path, Some(&page), Some(&pick("deviceId", &["A1B2-C3D4"]))).status, 200);
    wait_for("the end of the call", || log.text().contains("went on with the answer").then_some(()));
    log.wait_for("A1B2-C3D4");
    terminate(demo.0.id());
    assert!(demo.0.wait().unwrap().success(), "{}", log.text());
    assert_eq!(std::fs::read_dir(&folders).unwrap().count(), 0, "nothing is left");
}

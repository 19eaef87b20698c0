//! Who may reach a running inbox, and what ends when they may no longer (S1, S11, S34, S41).

use std::{os::unix::fs::PermissionsExt as _, process::Stdio, time::Duration};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::support::{
    Agent, Collected, Ending, Events, Home, Up, call, request, wait_for, wait_for_link, wait_within,
};

/// How soon a stream ends after its token has (S34).
const SOON: Duration = Duration::from_secs(1);

#[test]
fn s1_no_foreign_page_name_or_cookie_gets_anything() {
    let home = Home::new();
    let up = Up::start(&home);
    let host = up.url.strip_prefix("http://").unwrap();
    let bearer = format!("Bearer {}", up.operator);
    let own = ("Authorization", bearer.as_str());
    let status = |path: &str, headers: &[(&str, &str)]| request(&up.url, "GET", path, headers).status;
    assert_eq!(status("/api/v1/asks", &[own, ("Origin", &up.url), ("Sec-Fetch-Site", "same-origin")]), 200);
    for path in ["/api/v1/asks", "/api/v1/events", "/api/v1/holder", "/metrics"] {
        for site in ["cross-site", "same-site"] {
            assert_eq!(status(path, &[own, ("Sec-Fetch-Site", site)]), 403, "{path} {site}");
        }
        for origin in ["http://127.0.0.1:3000", "https://evil.example", "null"] {
            assert_eq!(status(path, &[own, ("Origin", origin)]), 403, "{path} {origin}");
        }
        for name in ["evil.example", "127.0.0.1.evil.example:80"] {
            assert_eq!(status(path, &[own, ("Host", name)]), 421, "{path} {name}");
        }
    }
    let cookie = format!("token={0}; Authorization={bearer}", up.operator);
    assert_eq!(status("/api/v1/asks", &[("Host", host), ("Cookie", &cookie)]), 401);
}

#[test]
fn s41_the_page_and_the_api_tell_browsers_what_they_may_not_do() {
    let home = Home::new();
    let up = Up::start(&home);
    let bearer = format!("Bearer {}", up.operator);
    let get = |path: &str| request(&up.url, "GET", path, &[("Authorization", &bearer)]);
    for path in ["/", "/asks/anything", "/api/v1/asks", "/api/v1/nowhere", "/nowhere.js", "/metrics"] {
        let answer = get(path);
        let mut policy: Vec<&str> = answer.header("content-security-policy").split("; ").collect();
        policy.sort_unstable();
        let expected = [
            "base-uri 'none'",
            "connect-src 'self'",
            "default-src 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "img-src 'self'",
            "script-src 'self'",
            "style-src 'self'",
        ];
        assert_eq!(policy, expected, "{path}");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("set-cookie"), "", "{path}");
        let is_api = path.starts_with("/api/");
        assert!(!is_api || answer.header("cache-control") == "no-store", "{path}");
    }
    let page = get("/").text;
    assert!(!page.contains("<script>") && !page.contains("style=") && !page.contains("<style"), "{page}");
}

#[test]
fn s34_what_a_token_opened_ends_within_a_second_of_the_token() {
    let home = Home::new();
    let up = Up::start(&home);
    let create = |scope: &str, name: &str, more: &[&str]| {
        let arguments = [&["token", "create", "--scope", scope, "--name", name], more].concat();
        home.stdout(&arguments).trim_end().to_owned()
    };
    let login = |secret: &str| {
        let page = call(&up.url, "POST", "/api/v1/login", None, Some(&json!({"secret": secret})));
        assert_eq!(page.status, 200, "{}", page.body);
        page.body["token"].as_str().unwrap().to_owned()
    };
    let open = |token: &str| {
        let events = Events::open(&up.url, token);
        wait_for("the snapshot", || (!events.named("snapshot").is_empty()).then_some(()));
        events
    };
    let status = |token: &str| call(&up.url, "GET", "/api/v1/asks", Some(token), None).status;

    // Revoked: its own stream, that of a page that it signed in, and that of a holder.
    let viewer = create("viewer", "Eve", &[]);
    let page = login(&viewer);
    let holder = create("holder", "laptop", &[]);
    let token = [("HANDRAISE_TOKEN", holder.as_str())];
    let inbox = format!("unix:{}", home.data_dir().join("inbox.sock").display());
    let agent = Agent::start(&home, &["--attach", "--inbox", &inbox, "--prompt", "single"], &[], &token);
    let ask = up.wait_for_ask();
    let (streams, kept) = ([open(&viewer), open(&page)], open(&up.operator));
    let list: serde_json::Value = serde_json::from_str(&home.stdout(&["token", "list", "--json"])).unwrap();
    let id = |name: &str| {
        let tokens = list["tokens"].as_array().unwrap();
        let made = tokens.iter().find(|token| token["name"] == name && token["page_session"] == false);
        made.unwrap()["id"].as_str().unwrap().to_owned()
    };
    for name in ["Eve", "laptop"] {
        home.stdout(&["token", "revoke", &id(name)]);
    }
    wait_within("end of the streams", SOON, || streams.iter().all(Events::has_ended).then_some(()));
    wait_within("loss of the holder", SOON, || (up.ask(&ask)["holder_connected"] == false).then_some(()));
    assert_eq!((status(&viewer), status(&page)), (401, 401));
    assert!(agent.responses().is_empty(), "the ask outlives the stream");

    // Signed out.
    let operator = login(&up.operator);
    let stream = open(&operator);
    assert_eq!(call(&up.url, "POST", "/api/v1/logout", Some(&operator), None).status, 204);
    wait_within("end of the stream", SOON, || stream.has_ended().then_some(()));
    assert_eq!(status(&operator), 401);

    // Expired.
    let brief = create("viewer", "brief", &["--expires", "2s"]);
    let stream = open(&brief);
    wait_within("end of the stream", 3 * SOON, || stream.has_ended().then_some(()));
    assert_eq!(status(&brief), 401);
    assert!(!kept.has_ended(), "nobody else's stream has ended");
}

/// Starts `handraise up` as from a desktop's terminal, with a browser of the test's own.
fn up_with_browser(home: &Home, browser: &str) -> (Ending, Collected, Collected) {
    let programs = home.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("xdg-open"), browser).unwrap();
    std::fs::set_permissions(programs.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let line = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = home
        .handraise(&["up", "--listen", "127.0.0.1:0", "--log", "trace"])
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("DISPLAY", ":0")
        .stdout(Stdio::piped())
        .stderr(line)
        .spawn()
        .unwrap();
    let printed = Collected::from(child.stdout.take().unwrap());
    let log = Collected::from(std::fs::File::from(master));
    (Ending(child), printed, log)
}

#[test]
fn s11_the_sign_in_secret_is_good_once_by_post_and_is_in_no_argument_and_no_log() {
    let home = Home::new();
    let seen = home.path().join("seen");
    let browser = format!(
        "#!/bin/sh\n{{ tr '\\0' ' ' </proc/$$/cmdline; echo; stat -c %a \"$1\"; cat \"$1\"; }} >{0}.part; mv {0}.part {0}\n",
        seen.display()
    );
    let (mut up, printed, log) = up_with_browser(&home, &browser);
    let (url, secret) = wait_for_link(&printed, &mut up.0, &log);
    let seen = wait_for("the browser", || std::fs::read_to_string(&seen).ok());
    let mut lines = seen.splitn(3, '\n');
    let (arguments, mode, page) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
    assert!(arguments.ends_with("/sign-in.html ") && !arguments.contains(&secret), "{arguments}");
    assert_eq!(mode, "600");
    assert!(page.contains(&format!("{url}/#sign-in={secret}")), "{page}");

    // Whoever follows a link, or is made to, signs nobody in and uses nothing up.
    for path in ["/?sign-in=", "/sign-in/", "/login?secret=", "/api/v1/login?secret=", "/api/v1/login/"] {
        for method in ["GET", "HEAD"] {
            let answer = request(&url, method, &format!("{path}{secret}"), &[]);
            assert!(!answer.text.contains("\"token\"") && !answer.text.contains(&secret), "{method} {path}");
            assert_eq!(answer.header("set-cookie"), "", "{method} {path}");
        }
    }
    let login = || call(&url, "POST", "/api/v1/login", None, Some(&json!({"secret": secret})));
    let first = login();
    assert_eq!(first.status, 200, "{}", first.body);
    let token = first.body["token"].as_str().unwrap();
    assert_eq!(call(&url, "GET", "/api/v1/asks", Some(token), None).status, 200);
    assert_eq!(login().status, 401, "once");

    wait_for("the log", || log.text().contains("a page signed in").then_some(()));
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", up.0.id())).unwrap();
    for text in [&log.text(), &arguments] {
        assert!(!text.contains(&secret) && !text.contains(token), "{text}");
    }
}

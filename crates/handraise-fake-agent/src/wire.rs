//! JSON-RPC over lines: frames out, frames in, every line in recorded.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read, Write},
    path::Path,
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

/// Why the agent stops altogether.
#[derive(Debug)]
pub(crate) enum Gone {
    /// The client closed its side.
    InputEnded,
    /// The script ends the process.
    Exit(u8),
}

/// Both directions of the connection.
pub(crate) struct Wire<'a> {
    output: Box<dyn Write + Send + 'a>,
    input: Receiver<Value>,
    /// The id of the next request. Real agents start at 0 after every start.
    pub(crate) next_id: u64,
}

/// A frame from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: u64, outcome: Result<Value, Value> },
}

impl<'a> Wire<'a> {
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'a,
        record: Option<&Path>,
    ) -> io::Result<Self> {
        let mut record =
            record.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        let (sender, receiver) = channel();
        // Reading in a thread of its own keeps the client from ever waiting for us.
        thread::spawn(move || {
            for line in BufReader::new(input).split(b'\n').map_while(Result::ok) {
                if let Some(record) = &mut record {
                    let recorded = [&line[..], b"\n"].concat();
                    if record.write_all(&recorded).and_then(|()| record.flush()).is_err() {
                        break;
                    }
                }
                let Ok(frame) = serde_json::from_slice(&line) else {
                    break;
                };
                if sender.send(frame).is_err() {
                    break;
                }
            }
        });
        Ok(Self { output: Box::new(output), input: receiver, next_id: 0 })
    }

    /// Waits for the client.
    pub(crate) fn receive(&self) -> Result<Incoming, Gone> {
        loop {
            let mut frame = self.input.recv().map_err(|_| Gone::InputEnded)?;
            let id = frame.get("id").cloned();
            let method = frame.get("method").and_then(Value::as_str).map(str::to_owned);
            match (id, method) {
                (Some(id), Some(method)) => {
                    return Ok(Incoming::Request { id, method, params: frame["params"].take() });
                }
                (None, Some(method)) => {
                    return Ok(Incoming::Notification { method, params: frame["params"].take() });
                }
                (Some(id), None) => {
                    let Some(id) = id.as_u64() else { continue };
                    let outcome = match frame.get_mut("error") {
                        Some(error) => Err(error.take()),
                        None => Ok(frame["result"].take()),
                    };
                    return Ok(Incoming::Response { id, outcome });
                }
                (None, None) => {}
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<u64, Gone> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) -> Result<(), Gone> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub(crate) fn respond(&mut self, id: &Value, result: &Value) -> Result<(), Gone> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    pub(crate) fn fail(&mut self, id: &Value, code: i32, message: &str) -> Result<(), Gone> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    fn send(&mut self, frame: &Value) -> Result<(), Gone> {
        self.raw(format!("{frame}\n").as_bytes())
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.output.write_all(bytes).and_then(|()| self.output.flush()).map_err(|_| Gone::InputEnded)
    }
}

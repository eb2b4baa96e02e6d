//! A client that shows what is sent and received.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone, Copy)]
pub(crate) struct Client(pub(crate) SocketAddr);

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    /// Sends a GET with these header lines.
    pub(crate) async fn get(self, path: &str, headers: &[&str]) -> Reply {
        self.send("GET", path, headers).await
    }

    pub(crate) async fn post(self, path: &str, headers: &[&str], body: &str) -> Reply {
        let length = format!("content-length: {}", body.len());
        let mut stream = self.open("POST", path, &[headers, &[&length]].concat()).await;
        // A service may refuse the request without reading its body.
        _ = stream.write_all(body.as_bytes()).await;
        Reply::read(stream).await
    }

    pub(crate) async fn send(self, method: &str, path: &str, headers: &[&str]) -> Reply {
        Reply::read(self.open(method, path, headers).await).await
    }

    /// Sends the head of a request, and leaves the connection open.
    pub(crate) async fn open(self, method: &str, path: &str, headers: &[&str]) -> TcpStream {
        let mut stream = TcpStream::connect(self.0).await.unwrap();
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{lines}\r\n", self.0);
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

impl Reply {
    async fn read(mut stream: TcpStream) -> Self {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Reply { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
    }

    /// Returns the only value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values =
            self.headers.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} twice");
        value
    }

    /// Returns the seconds of `retry-after`.
    pub(crate) fn seconds(&self) -> u64 {
        self.header("retry-after").unwrap().parse().unwrap()
    }

    /// Returns the body of a chunked response, without the lengths.
    pub(crate) fn chunks(&self) -> String {
        self.body.split("\r\n").skip(1).step_by(2).collect()
    }
}

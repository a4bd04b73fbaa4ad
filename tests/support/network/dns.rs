//! A DNS server whose answers are scripted for each name and may change from one look-up to the next.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hickory_proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// The answer to one look-up.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Addresses of both kinds: a query gets those of its type.
    Addresses(Vec<IpAddr>),
    /// A chain of other names, the last of which has the addresses.
    Alias(Vec<String>, Vec<IpAddr>),
    /// The name does not exist: `NXDOMAIN`.
    NoSuchName,
    /// The server fails: `SERVFAIL`.
    Failure,
    /// The addresses, as those of another name than was asked for.
    OfAnother(Vec<IpAddr>),
    /// The addresses, in an answer to another query.
    OtherId(Vec<IpAddr>),
    /// Too long for a datagram: the client has to come back over TCP.
    Truncated(Vec<IpAddr>),
    /// Bytes that are not a DNS message.
    Garbage(Vec<u8>),
    /// The query is never answered.
    Silence,
}

impl Answer {
    /// An answer with these addresses.
    ///
    /// # Panics
    /// If one is not an address.
    #[must_use]
    pub fn addresses(addresses: &[&str]) -> Self {
        Self::Addresses(parse(addresses))
    }

    /// A chain of other names, the last of which has the addresses.
    ///
    /// # Panics
    /// If one is not an address.
    #[must_use]
    pub fn alias(names: &[&str], addresses: &[&str]) -> Self {
        Self::Alias(names.iter().map(|name| (*name).to_owned()).collect(), parse(addresses))
    }
}

/// Parses addresses from text.
///
/// # Panics
/// If one is not an address.
#[must_use]
pub fn parse(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap_or_else(|_| panic!("{address} is no address"))).collect()
}

/// A running server. It stops when dropped.
#[derive(Debug)]
pub struct Dns {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

#[derive(Debug, Default)]
struct Script {
    answers: BTreeMap<String, Vec<Answer>>,
    queries: Vec<(String, RecordType)>,
}

impl Dns {
    /// Starts on a free port of `127.0.0.1`, the same over UDP and TCP.
    pub async fn start() -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
            // Another process may have the TCP port of that number.
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("an address")).await {
                break (udp, tcp);
            }
        };
        let script = Arc::new(Mutex::new(Script::default()));
        let address = udp.local_addr().expect("an address");
        let tasks =
            [tokio::spawn(over_udp(udp, Arc::clone(&script))), tokio::spawn(over_tcp(tcp, Arc::clone(&script)))];
        Self { address, script, tasks }
    }

    /// The value for `[network] resolver`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Answers a name: the first look-up of a type gets the first answer, and so on; the last answer stays. Names that
    /// without an answer do not exist.
    #[must_use]
    pub fn with(self, name: &str, answers: &[Answer]) -> Self {
        self.set(name, answers);
        self
    }

    /// The same while it runs; earlier look-ups of the name are forgotten.
    pub fn set(&self, name: &str, answers: &[Answer]) {
        let mut script = self.script.lock();
        script.queries.retain(|(asked, _)| asked != name);
        script.answers.insert(name.to_owned(), answers.to_vec());
    }

    /// How often a name was asked for: the larger of the counts for IPv4 and for IPv6, so that asking for both is one look-up.
    #[must_use]
    pub fn look_ups(&self, name: &str) -> usize {
        let script = self.script.lock();
        let count = |kind| script.queries.iter().filter(|query| **query == (name.to_owned(), kind)).count();
        count(RecordType::A).max(count(RecordType::AAAA))
    }

    /// Every name that was asked for, once for each query.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let script = self.script.lock();
        script.queries.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn over_udp(socket: UdpSocket, script: Arc<Mutex<Script>>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok((bytes, from)) = socket.recv_from(&mut buffer).await {
        if let Some(reply) = reply(&buffer[..bytes], &script, Transport::Udp) {
            socket.send_to(&reply, from).await.ok();
        }
    }
}

async fn over_tcp(listener: TcpListener, script: Arc<Mutex<Script>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, Arc::clone(&script)));
    }
}

async fn converse(mut stream: TcpStream, script: Arc<Mutex<Script>>) -> Option<()> {
    loop {
        let bytes = stream.read_u16().await.ok()?;
        let mut query = vec![0; usize::from(bytes)];
        stream.read_exact(&mut query).await.ok()?;
        if let Some(reply) = reply(&query, &script, Transport::Tcp) {
            stream.write_u16(u16::try_from(reply.len()).ok()?).await.ok()?;
            stream.write_all(&reply).await.ok()?;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

fn reply(query: &[u8], script: &Mutex<Script>, transport: Transport) -> Option<Vec<u8>> {
    let asked = Message::from_vec(query).ok()?;
    let question = asked.queries.first()?.clone();
    let name = question.name().to_ascii().trim_end_matches('.').to_lowercase();
    let answer = {
        let mut script = script.lock();
        let key = (name.clone(), question.query_type());
        let answers = script.answers.get(&name).cloned().unwrap_or_else(|| vec![Answer::NoSuchName]);
        let before = script.queries.iter().filter(|query| **query == key).count();
        // Over TCP comes who was told to: for the same answer.
        let number = if transport == Transport::Tcp { before.saturating_sub(1) } else { before };
        script.queries.push(key);
        answers.get(number).or(answers.last()).cloned()?
    };
    let mut reply = Message::response(asked.metadata.id, OpCode::Query);
    reply.metadata.recursion_desired = asked.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.add_query(question.clone());
    match answer {
        Answer::Addresses(addresses) => reply.answers = records(question.name(), &question, &addresses),
        Answer::Alias(names, addresses) => {
            let mut owner = question.name().clone();
            for alias in names {
                let alias = Name::from_ascii(format!("{alias}.")).expect("a name");
                reply.add_answer(Record::from_rdata(owner, 0, RData::CNAME(CNAME(alias.clone()))));
                owner = alias;
            }
            reply.add_answers(records(&owner, &question, &addresses));
        }
        Answer::NoSuchName => reply.metadata.response_code = ResponseCode::NXDomain,
        Answer::Failure => reply.metadata.response_code = ResponseCode::ServFail,
        Answer::OfAnother(addresses) => {
            let another = Name::from_ascii("another.example.").expect("a name");
            reply.answers = records(&another, &question, &addresses);
        }
        Answer::OtherId(addresses) => {
            reply.metadata.id = asked.metadata.id.wrapping_add(1);
            reply.answers = records(question.name(), &question, &addresses);
        }
        Answer::Truncated(_) if transport == Transport::Udp => reply.metadata.truncation = true,
        Answer::Truncated(addresses) => reply.answers = records(question.name(), &question, &addresses),
        Answer::Garbage(bytes) => return Some(bytes),
        Answer::Silence => return None,
    }
    Some(reply.to_vec().expect("a message"))
}

/// Records of the type that was asked for, not to be kept.
fn records(owner: &Name, question: &Query, addresses: &[IpAddr]) -> Vec<Record> {
    let wanted = |address: &IpAddr| match (question.query_type(), address) {
        (RecordType::A, IpAddr::V4(address)) => Some(RData::A(A(*address))),
        (RecordType::AAAA, IpAddr::V6(address)) => Some(RData::AAAA(AAAA(*address))),
        _ => None,
    };
    addresses.iter().filter_map(wanted).map(|data| Record::from_rdata(owner.clone(), 0, data)).collect()
}

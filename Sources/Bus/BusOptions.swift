// Where the bus is and how it is spoken to: what `--bus URL` says.

import Datagrams
import Primitives
import Wire

/// A broker's user and password.
///
/// Neither its description nor its mirror shows them.
public struct StompLogin: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    let user: String
    let password: String

    /// Takes user and password as they are, without `%XX`.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Shows neither of them.
    public var description: String { "(a login)" }
    /// Shows neither of them.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Where the bus is and how it is spoken to: what `--bus URL` says.
///
///     stomp://user:password@h1:61613,h2:61613?vhost=NAME        also stomp+tls://…?ca=FILE
///     multicast://239.192.7.7:6970?interface=eth0&ttl=1         also multicast://[ff15::7]:6970
///     embedded                                                  also embedded:HOST:PORT
///
/// No message of this file shows a login, nor a URL that could hold one.
public struct BusOptions: Sendable, Equatable {
    /// The place of a message broker.
    public struct Broker: Sendable, Equatable, CustomStringConvertible {
        /// A name or an address, without brackets.
        public var host: String
        /// 1…65,535.
        public var port: Int

        /// Takes the fields as they are.
        public init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// `HOST:PORT`, with brackets around an IPv6 address.
        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// A message broker that speaks STOMP, or several that stand in for each other.
    public struct Stomp: Sendable, Equatable {
        /// In the order in which they are tried; at least one.
        public var brokers: [Broker]
        /// nil: the broker lets anybody in, or has a default.
        public var login: StompLogin?
        /// Whether the connection is encrypted, and the broker proves its name.
        public var usesTLS: Bool
        /// A file of certificates to trust in place of the system's; nil: the system's.
        public var certificates: String?
        /// RabbitMQ's virtual host.
        ///
        /// Other brokers do not look at it.
        public var virtualHost: String
    }

    /// A multicast group of one network.
    public struct Multicast: Sendable, Equatable {
        /// Address and port.
        public var group: SocketAddress
        /// Name or address of a network interface; nil: the first that can.
        public var interface: String?
        /// How many routers a datagram may pass, 0…255.
        public var timeToLive: Int
    }

    /// What the bus is made of.
    public enum Endpoint: Sendable, Equatable {
        case stomp(Stomp)
        case multicast(Multicast)
        /// A broker inside the process that comes first; the others are its clients.
        case embedded(Broker)
    }

    /// What the bus is made of.
    public var endpoint: Endpoint

    /// 64 of them are more than anybody has; a list that is longer is a mistake.
    public static let maxBrokers = 64
    /// The port of a broker whose URL names none.
    public static let stompPort = 61_613
    /// Beside the brokers' own port, so that a broker on this host is not taken for ours.
    public static let embeddedPort = 61_623

    /// - Throws: what is wrong with the URL, and what would be right.
    public init(url: String) throws(BusConfigurationError) {
        if url == "embedded" {
            endpoint = .embedded(Broker(host: "127.0.0.1", port: BusOptions.embeddedPort))
        } else if url.hasPrefix("embedded:") {
            endpoint = .embedded(
                try BusOptions.broker(
                    url.dropFirst("embedded:".count), "the bus's broker", defaultPort: nil))
        } else if url.hasPrefix("stomp://") {
            endpoint = .stomp(try BusOptions.stomp(url.dropFirst("stomp://".count), usesTLS: false))
        } else if url.hasPrefix("stomp+tls://") {
            endpoint = .stomp(try BusOptions.stomp(url.dropFirst("stomp+tls://".count), usesTLS: true))
        } else if url.hasPrefix("multicast://") {
            endpoint = .multicast(try BusOptions.multicast(url.dropFirst("multicast://".count)))
        } else {
            throw BusConfigurationError(
                "the bus is none that there is; write stomp://USER:PASSWORD@HOST:PORT, stomp+tls://…, "
                    + "multicast://GROUP:PORT, or embedded")
        }
    }

    /// As `BusStatus.endpoint` shows it.
    public var description: String {
        switch endpoint {
        case .stomp(let stomp):
            (stomp.usesTLS ? "stomp+tls://" : "stomp://") + stomp.brokers.map(\.description).joined(separator: ",")
        case .multicast(let multicast): "multicast://\(multicast.group)"
        case .embedded(let broker):
            broker == Broker(host: "127.0.0.1", port: BusOptions.embeddedPort) ? "embedded" : "embedded:\(broker)"
        }
    }
}

extension BusOptions: CustomStringConvertible {}

// MARK: - Reading

extension BusOptions {
    private static func stomp(_ text: Substring, usesTLS: Bool) throws(BusConfigurationError) -> Stomp {
        var (authority, query) = try parts(text)
        var stomp = Stomp(brokers: [], login: nil, usesTLS: usesTLS, certificates: nil, virtualHost: "/")
        // The last one: a password may hold an unescaped "@", a host cannot.
        if let at = authority.lastIndex(of: "@") {
            stomp.login = try login(authority[..<at])
            authority = authority[authority.index(after: at)...]
        }
        let hosts = authority.split(separator: ",", omittingEmptySubsequences: false)
        guard hosts.count <= maxBrokers else {
            throw BusConfigurationError("the bus has \(hosts.count) brokers; write at most \(maxBrokers)")
        }
        for (index, host) in hosts.enumerated() {
            let name = hosts.count == 1 ? "the bus's broker" : "broker \(index + 1) of the bus"
            stomp.brokers.append(try broker(host, name, defaultPort: stompPort))
        }
        for (name, value) in query {
            switch name {
            case "vhost": stomp.virtualHost = value
            case "ca" where usesTLS: stomp.certificates = value
            case "ca": throw BusConfigurationError("the option ca of the bus is for stomp+tls:// only")
            default: throw unknownOption(name, usesTLS ? "vhost and ca" : "vhost")
            }
        }
        return stomp
    }

    private static func multicast(_ text: Substring) throws(BusConfigurationError) -> Multicast {
        let (authority, query) = try parts(text)
        let place = try broker(authority, "the bus's group", defaultPort: nil)
        guard let group = SocketAddress(host: place.host, port: UInt16(clamping: place.port)) else {
            throw BusConfigurationError(
                "the bus's multicast group \(quoted(place.host)) is no address; write for example 239.192.7.7 or "
                    + "[ff15::7]")
        }
        guard group.isGroup else {
            throw BusConfigurationError(
                "the bus's address \(group.host) is no multicast group; write one of 224.0.0.0/4, best of "
                    + "239.0.0.0/8, or of ff00::/8")
        }
        var multicast = Multicast(group: group, interface: nil, timeToLive: 1)
        for (name, value) in query {
            switch name {
            case "interface": multicast.interface = value
            case "ttl":
                guard let number = Int(value), (0...255).contains(number) else {
                    throw BusConfigurationError("the option ttl of the bus is \(quoted(value)); write 0 to 255")
                }
                multicast.timeToLive = number
            default: throw unknownOption(name, "interface and ttl")
            }
        }
        return multicast
    }

    private static func unknownOption(_ name: String, _ known: String) -> BusConfigurationError {
        BusConfigurationError("the bus has no option \(quoted(name)); there are \(known)")
    }

    /// What stands before the `?`, and the options behind it.
    private static func parts(
        _ text: Substring
    ) throws(BusConfigurationError) -> (authority: Substring, query: [(name: String, value: String)]) {
        // Of the last part only: passwords may hold an unescaped "?".
        let hostStart = text.lastIndex(of: "@") ?? text.startIndex
        let mark = text[hostStart...].firstIndex(of: "?") ?? text.endIndex
        var authority = text[..<mark]
        if authority.hasSuffix("/") { authority.removeLast() }
        var query: [(name: String, value: String)] = []
        for option in text[mark...].dropFirst().split(separator: "&") {
            let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let value = percentDecoded(pair[1]), !value.isEmpty else {
                throw BusConfigurationError(
                    "the bus's option \(quoted(pair[0])) has no value, or one with control characters; write NAME=VALUE"
                )
            }
            query.append((String(pair[0]), value))
        }
        return (authority, query)
    }

    private static func login(_ text: Substring) throws(BusConfigurationError) -> StompLogin {
        let pair = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard pair.count == 2, let user = percentDecoded(pair[0]), let password = percentDecoded(pair[1]),
            !user.isEmpty
        else {
            throw BusConfigurationError(
                "the login of the bus is not USER:PASSWORD; write %XX for other signs than letters and digits, such "
                    + "as %40 for @ and %25 for %")
        }
        return StompLogin(user: user, password: password)
    }

    /// Reads `HOST:PORT`, or `HOST` where there is a default port.
    ///
    /// - Parameters:
    ///   - text: as written, without a login.
    ///   - name: stands for the text in errors: what is no broker may be a login that lacks its host.
    ///   - defaultPort: nil where the port must be written.
    /// - Returns: a host that is not empty, and a port.
    /// - Throws: what would be right.
    private static func broker(
        _ text: Substring, _ name: String, defaultPort: Int?
    ) throws(BusConfigurationError) -> Broker {
        var host = text
        var port = defaultPort
        var portText: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if rest.hasPrefix(":") { portText = rest.dropFirst() }
            guard rest.isEmpty || rest.hasPrefix(":"), SocketAddress(host: host, port: 0)?.isIPv4 == false else {
                throw BusConfigurationError("\(name) has no IPv6 address in its brackets; write [2001:db8::1]:PORT")
            }
        } else {
            let pair = text.split(separator: ":", omittingEmptySubsequences: false)
            guard pair.count <= 2 else {
                throw BusConfigurationError(
                    "\(name) has several colons; write HOST:PORT, IPv6 addresses in brackets, and a login as "
                        + "USER:PASSWORD@")
            }
            host = pair[0]
            if pair.count == 2 { portText = pair[1] }
        }
        if let portText {
            guard let number = UInt16(portText), number > 0, portText.utf8.first != UInt8(ascii: "+") else {
                throw BusConfigurationError(
                    "\(name) has a port that is none; write HOST:PORT with a port of 1 to 65535, and a login before "
                        + "it as USER:PASSWORD@")
            }
            port = Int(number)
        }
        guard let port else { throw BusConfigurationError("\(name) has no port; write HOST:PORT") }
        guard !host.isEmpty, host.utf8.allSatisfy({ (33...126).contains($0) && !"/@?#[]".utf8.contains($0) }) else {
            throw BusConfigurationError("\(name) has no host that could be one; write a name or an address")
        }
        return Broker(host: String(host), port: port)
    }

    /// nil where a `%` has no two digits behind it, or the bytes are no UTF-8, or control characters, which would end a
    /// line of a frame.
    private static func percentDecoded(_ text: Substring) -> String? {
        var decoded: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard rest.count >= 2, let value = bytes(hexadecimal: String(decoding: rest.prefix(2), as: UTF8.self))
            else { return nil }
            decoded += value
            rest = rest.dropFirst(2)
        }
        guard decoded.allSatisfy({ $0 >= 32 && $0 != 127 }) else { return nil }
        return String(validating: decoded, as: UTF8.self)
    }
}

/// A cluster's name on the bus: part of destinations, so it may hold nothing that means something in one.
public struct ClusterName: Sendable, Equatable, CustomStringConvertible {
    /// The name as it was written.
    public let description: String

    /// Bytes, and so characters, of the longest name.
    public static let maxByteCount = 64

    /// - Throws: when it is empty, too long, or has other signs than letters, digits, `-` and `_`.
    public init(_ name: String) throws(BusConfigurationError) {
        func isAllowed(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard (1...ClusterName.maxByteCount).contains(name.utf8.count), name.utf8.allSatisfy(isAllowed) else {
            throw BusConfigurationError(
                "the cluster's name \(quoted(name)) will not do; write 1 to \(ClusterName.maxByteCount) letters, "
                    + "digits, - and _")
        }
        description = name
    }
}

extension BusOptions {
    /// The password of the broker's user; nil where there is none.
    package var password: String? {
        guard case .stomp(let stomp) = endpoint else { return nil }
        return stomp.login?.password
    }
}

// What `--bus`, `--cluster-name` and `--cluster-key-file` say, and what is said of them when they are wrong.

import Bus
import Foundation
import Primitives
import Testing

@Suite("Bus options")
struct BusOptionsTests {
    private func stomp(_ url: String) throws -> BusOptions.Stomp {
        guard case .stomp(let stomp) = try BusOptions(url: url).endpoint else { throw BusConfigurationError(url) }
        return stomp
    }

    @Test func `several brokers, a login and options`() throws {
        let options = try stomp("stomp://me:p%40ss%2Fw@h1:61613,h2,[2001:db8::1]:7?vhost=%2Fswarm")
        #expect(options.brokers.map(\.description) == ["h1:61613", "h2:61613", "[2001:db8::1]:7"])
        #expect(options.login == StompLogin(user: "me", password: "p@ss/w"))
        #expect(options.virtualHost == "/swarm" && !options.usesTLS)
        let secure = try stomp("stomp+tls://h/?ca=/etc/ca.pem")
        #expect(secure.usesTLS && secure.certificates == "/etc/ca.pem" && secure.login == nil)
        #expect(secure.virtualHost == "/")
    }

    @Test func `a password may hold what means something elsewhere`() throws {
        #expect(try stomp("stomp://me:a:b@c?d,e@h").login == StompLogin(user: "me", password: "a:b@c?d,e"))
        #expect(try stomp("stomp://me:@h").login == StompLogin(user: "me", password: ""))
    }

    @Test func `groups of both families`() throws {
        let four = try BusOptions(url: "multicast://239.192.7.7:6970?interface=eth0&ttl=4")
        guard case .multicast(let multicast) = four.endpoint else { throw BusConfigurationError("") }
        #expect(multicast.group == SocketAddress(ipv4: 0xEFC0_0707, port: 6970))
        #expect(multicast.interface == "eth0" && multicast.timeToLive == 4)
        let six = try BusOptions(url: "multicast://[ff15::7]:6970")
        #expect(six.description == "multicast://[ff15::7]:6970")
    }

    @Test func `the embedded broker has a place of its own, or one that is named`() throws {
        #expect(try BusOptions(url: "embedded").description == "embedded")
        let named = try BusOptions(url: "embedded:192.0.2.1:7000")
        #expect(named.endpoint == .embedded(.init(host: "192.0.2.1", port: 7000)))
        #expect(named.description == "embedded:192.0.2.1:7000")
    }

    @Test(arguments: [
        ("amqp://h", "stomp://"), ("", "stomp://"), ("embedded:here", "no port"),
        ("stomp://h:0", "1 to 65535"), ("stomp://h:70000", "1 to 65535"), ("stomp://h:+1", "1 to 65535"),
        ("stomp://", "no host"), ("stomp://h1,,h2", "no host"), ("stomp://::1", "brackets"),
        ("stomp://[192.0.2.1]:7", "IPv6"), ("stomp://h?vhost", "no value"), ("stomp://h?vhost=", "no value"),
        ("stomp://h?interface=lo", "there are vhost"), ("stomp://h?ca=x", "stomp+tls"),
        ("stomp://me@h", "USER:PASSWORD"),
        ("stomp://me:50%@h", "%25"), ("multicast://239.1.1.1", "no port"), ("multicast://h:1", "no address"),
        ("multicast://192.0.2.1:1", "no multicast group"), ("multicast://239.1.1.1:1?ttl=256", "0 to 255"),
        ("multicast://239.1.1.1:1?vhost=x", "interface and ttl"),
    ])
    func `a mistake is told with what would be right`(_ url: String, _ hint: String) {
        let error = #expect(throws: BusConfigurationError.self) { try BusOptions(url: url) }
        #expect(error?.description.contains(hint) == true, "\(error?.description ?? "")")
    }

    @Test(arguments: [
        "stomp://me:sekret", "stomp://me:sekret@", "stomp://me:sekret@h:x", "stomp://me:sekret@[h",
        "stomp:/me:sekret@h",
        "stomp://me:sekret%4@h", "stomp://me:sekret@h?foo", "stomp://me:sekret@h?foo=1", "stomp://me:sekret@h,h:0",
        "stomp://me:sekret:1:2", "stomp://sekret", "stomp://me:sekret%40h", "sekret",
    ])
    func `no message shows a login`(_ url: String) throws {
        do {
            let options = try BusOptions(url: url)
            // What is one host and no login may be shown, as it is.
            #expect(url == "stomp://sekret")
            #expect(options.description == "stomp://sekret:61613")
        } catch {
            #expect(!error.description.contains("sekret"))
        }
        let good = try BusOptions(url: "stomp://me:sekret@h")
        var dumped = ""
        dump(good, to: &dumped)
        #expect(!"\(good) \(good.endpoint) \(String(reflecting: good)) \(dumped)".contains("sekret"))
    }

    @Test func `a login cannot smuggle lines into a frame`() {
        #expect(throws: BusConfigurationError.self) { try BusOptions(url: "stomp://me:a%0Ab@h") }
        #expect(throws: BusConfigurationError.self) { try BusOptions(url: "stomp://m%00e:a@h") }
        #expect(throws: BusConfigurationError.self) { try BusOptions(url: "stomp://h?vhost=%0Aa") }
    }

    @Test func `a cluster's name is a word`() throws {
        for name in ["a", "main-2_B", String(repeating: "x", count: 64)] {
            #expect(try ClusterName(name).description == name)
        }
        for name in ["", "a.b", "a b", "*", "a>", "a/b", "ä", String(repeating: "x", count: 65)] {
            #expect(throws: BusConfigurationError.self) { try ClusterName(name) }
        }
    }

    // MARK: Keys

    private func write(_ bytes: [UInt8], mode: Int, in directory: TemporaryDirectory) throws -> String {
        let path = directory.path("key")
        // A file that only its owner may read could not be written again.
        try? FileManager.default.removeItem(atPath: path)
        _ = try directory.write("key", bytes)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    @Test func `a key that was made can be read, with or without its last line end`() throws {
        let directory = try TemporaryDirectory()
        let text = ClusterKey.makeKey()
        #expect(text.utf8.count == 65 && text != ClusterKey.makeKey())
        let key = try ClusterKey(file: write(Array(text.utf8), mode: 0o600, in: directory))
        #expect(try ClusterKey(file: write(Array(text.utf8.dropLast()), mode: 0o400, in: directory)) == key)
        #expect(try ClusterKey(Array(text.utf8.dropLast())) == key)
        #expect(try ClusterKey(file: write(Array(ClusterKey.makeKey().utf8), mode: 0o600, in: directory)) != key)
    }

    @Test func `root may give a key file to a tracker's group; a tracker's own file is for nobody else`() {
        typealias Case = (mode: mode_t, owner: uid_t, user: uid_t, isGuarded: Bool)
        let cases: [Case] = [
            (0o100600, 100, 100, true), (0o100400, 100, 100, true), (0o100440, 100, 100, false),
            // As systemd passes credentials on: root's, and the service's by an access list, which shows as the group.
            (0o100440, 0, 100, true), (0o100640, 0, 100, true), (0o100400, 0, 100, true),
            (0o100444, 0, 100, false), (0o100660, 0, 100, false), (0o100604, 0, 100, false),
            // Who runs as root has nobody to get it from.
            (0o100640, 0, 0, false), (0o100600, 0, 0, true), (0o100440, 7, 100, false),
        ]
        for (mode, owner, user, isGuarded) in cases {
            #expect(
                ClusterKey.isGuarded(mode: mode, owner: owner, user: user) == isGuarded,
                "\(String(mode, radix: 8)) of \(owner), read by \(user)")
        }
    }

    @Test func `a key file that others may read, or that holds too little, is refused with what to do`() throws {
        let directory = try TemporaryDirectory()
        let good = [UInt8](repeating: 0x41, count: 32)
        func problem(_ path: String) -> String {
            do {
                _ = try ClusterKey(file: path)
                return ""
            } catch { return "\(error)" }
        }
        for mode in [0o640, 0o604, 0o660, 0o644, 0o610] {
            let text = problem(try write(good, mode: mode, in: directory))
            #expect(text.contains("chmod 600") && text.contains(directory.path("key")))
        }
        #expect(
            problem(try write(Array(good.dropLast()) + [0x0A, 0x20], mode: 0o600, in: directory)).contains("31 bytes"))
        #expect(problem(try write([], mode: 0o600, in: directory)).contains("openssl"))
        let long = [UInt8](repeating: 0x41, count: 5000)
        #expect(problem(try write(long, mode: 0o600, in: directory)).contains("right file"))
        #expect(problem(directory.path("nowhere")).contains("no such file"))
        #expect(problem(directory.path("")).contains("directory"))
    }
}

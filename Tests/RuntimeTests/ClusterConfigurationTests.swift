import Primitives
import Settings
import Testing
import TrackerLogic

/// What operators say of a cluster, and what they are told when it contradicts itself.
@Suite("Cluster configuration")
struct ClusterConfigurationTests {
    /// The least that a tracker of a cluster needs.
    private static let bus: [SettingKey: [String]] = [.bus: ["embedded"], .clusterKeyFile: ["/k"]]

    private static func load(_ more: [SettingKey: [String]]) throws -> NodeConfiguration {
        try ConfigurationTests.load(flags: bus.merging(more) { $1 }).node
    }

    @Test
    func `a bus alone: survivor mode, and a number from the master`() throws {
        let node = try Self.load([:])
        #expect(node.id == 0)
        #expect(node.cluster == ClusterConfiguration(mode: .survivor))
        #expect(try ConfigurationTests.load().node.cluster == .alone)
        #expect(try Self.load([.id: ["7"]]).id == 7)
    }

    @Test
    func `members: quorum mode, and the profile that goes with it`() throws {
        let node = try Self.load([.members: ["1,2,3"], .id: ["2"]])
        #expect(node.cluster == ClusterConfiguration(mode: .quorum, members: [1, 2, 3]))
        #expect(try Self.load([.members: ["1,2,3"], .id: ["4"], .spare: ["true"]]).cluster.members == [1, 2, 3])
    }

    @Test
    func `each profile is what it says, and single settings go before it`() throws {
        for profile in ClusterProfile.allCases where profile != .paxos {
            #expect(
                try Self.load([.profile: [profile.rawValue]]).cluster == profile.configuration(members: []),
                "\(profile)")
        }
        let policy = try Self.load([
            .profile: ["rotating"], .election: ["lowest"], .keepalive: ["250ms"], .missed: ["4"],
            .vote: ["all-asked-again"], .votePatience: ["3s"],
        ]).cluster
        #expect(
            policy
                == ClusterConfiguration(
                    mode: .survivor, election: .lowest, vote: .allAskedAgain(every: .seconds(3)),
                    keepalive: .milliseconds(250), missed: 4))
        // The patience is that of the profile's own vote.
        #expect(
            try Self.load([.profile: ["rotating"], .votePatience: ["1s"]]).cluster.vote
                == .allDropped(after: .seconds(1)))
    }

    @Test
    func `a group is the entry, where there is one`() throws {
        #expect(try Self.load([.group: ["239.192.7.7:6969"]]).cluster.entry == .group)
        #expect(try Self.load([.group: ["239.192.7.7:6969", "[ff15::7]:6969"]]).cluster.entry == .group)
        #expect(try Self.load([.entry: ["any"]]).cluster.entry == .any)
    }

    /// Flags beside the bus, and what is said of them.
    static let contradictions: [(flags: [SettingKey: [String]], message: String)] = [
        (
            [.members: ["1,2,3"]],
            "--members names who votes (1, 2, 3), but this tracker has no number; say which one it is by id (--id)"
        ),
        (
            [.members: ["1,2,3"], .id: ["0"]],
            "--members names who votes (1, 2, 3), but this tracker has no number; say which one it is by id (--id)"
        ),
        (
            [.members: ["1,2,3"], .id: ["4"]],
            "this tracker's number 4 is not among the members (1, 2, 3); correct one of them, or say by cluster.spare "
                + "(--spare) that it is to follow without a vote"
        ),
        (
            [.members: ["1,2,3"], .id: ["3"], .spare: ["true"]],
            "this tracker's number 3 is among the members (1, 2, 3), and --spare says that it is not; leave that out, "
                + "or give it another number"
        ),
        ([.members: ["1,2,1"], .id: ["1"]], "--members names 1 twice; write it once"),
        ([.spare: ["true"]], "--spare is set, but there are no members to be apart from; leave it out"),
        (
            [.members: ["1,0"], .id: ["1"]],
            "\"0\" in --members is out of range; write 1 to 4_294_967_295"
        ),
        (
            [.mode: ["survivor"], .members: ["1"], .id: ["1"]],
            "--mode is \"survivor\", in which those vote who are active, and --members names voters; leave one of them "
                + "out"
        ),
        (
            [.mode: ["quorum"]],
            "--mode is \"quorum\", which is a majority of the members, but there are none; name them by "
                + "cluster.members (--members)"
        ),
        (
            [.profile: ["paxos"]],
            "--profile is \"paxos\", which counts votes of members, but there are none; name them by cluster.members "
                + "(--members)"
        ),
        (
            [.profile: ["lowest"], .members: ["1"], .id: ["1"]],
            "--profile is \"lowest\", in which those vote who are active, and --members names voters; leave one of "
                + "them out, or choose \"paxos\""
        ),
        (
            [.votePatience: ["3s"]],
            "--vote-patience is for \"all\" and \"all-asked-again\", and the vote is by majority; leave it out, or "
                + "choose another by cluster.vote (--vote)"
        ),
        (
            [.entry: ["group"]],
            "--entry is \"group\", but there is no group to be heard in; name it by cluster.group (--group), for "
                + "example 239.192.7.7:6969"
        ),
        (
            [.entry: ["any"], .group: ["239.192.7.7:6969"]],
            "--entry is \"any\", and --group names a group; leave one of them out"
        ),
        (
            [.group: ["192.0.2.1:6969"]],
            "--group names 192.0.2.1:6969, which is no multicast address; write one of 239.0.0.0/8 or of ff00::/8, "
                + "such as 239.192.7.7:6969"
        ),
        (
            [.group: ["239.192.7.7:0"]], "--group names 239.192.7.7 without a port; clients have to know it"
        ),
        (
            [.group: ["239.192.7.7:1", "239.192.7.8:1"]],
            "--group names several IPv4 groups; write one, for a request that comes in two would be two"
        ),
        (
            [.interface: ["eth0"]],
            "--interface is for a group, and there is none; name one by cluster.group (--group), or write the "
                + "interface of a multicast bus into its URL (?interface=NAME)"
        ),
        ([.keepalive: ["10ms"]], "--keepalive \"10ms\" is out of range; write 100ms to 1m"),
        ([.keepalive: ["soon"]], "--keepalive \"soon\" is not a duration; write for example \"500ms\" or \"2s\""),
        ([.missed: ["1"]], "--missed \"1\" is out of range; write 2 to 60"),
        ([.clusterName: ["a b"]], "--cluster-name \"a b\" will not do; write 1 to 64 letters, digits, - and _"),
        (
            [.advertise: ["tracker.example"]],
            "--advertise \"tracker.example\" is no announce URL; write for example "
                + "\"udp://tracker.example:6969/announce\""
        ),
    ]

    @Test(arguments: contradictions)
    func `what contradicts itself is refused, with the way out`(flags: [SettingKey: [String]], message: String) {
        #expect(ConfigurationTests.problems(flags: Self.bus.merging(flags) { $1 }) == message)
    }

    @Test
    func `without a bus there is nobody to act with`() {
        let values: [(SettingKey, String)] = [
            (.clusterKeyFile, "/k"), (.members, "1"), (.spare, "true"), (.profile, "classic"), (.mode, "survivor"),
            (.election, "next"), (.vote, "all"), (.votePatience, "1s"), (.keepalive, "1s"), (.missed, "2"),
            (.entry, "group"), (.group, "239.1.1.1:1"),
        ]
        for (key, value) in values {
            let flag = "--\(Setting.of(key).flag)"
            #expect(
                ConfigurationTests.problems(flags: [key: [value]])
                    == "\(flag) is for a tracker that acts with others, and this one has no bus to them; name it by "
                    + "cluster.bus (--bus), or leave \(flag) out", "\(key)")
        }
    }

    @Test
    func `a bus needs a key, and the way to one is shown`() {
        #expect(
            ConfigurationTests.problems(flags: [.bus: ["embedded"]])
                == "--bus is given, but no key by which the trackers know each other; make one with: (umask 077; "
                + "openssl rand -hex 32 > cluster.key), give it to all of them, and name it by cluster.key-file "
                + "(--cluster-key-file)")
    }

    @Test
    func `no message about a bus shows its login`() {
        for url in [
            "stomp://admin:s3cret@", "stomp://admin:s3cret@host:port", "stmp://admin:s3cret@host",
            "admin:s3cret@host:1",
            "stomp://admin:s3cret@host?x=y", "multicast://admin:s3cret@1:2",
        ] {
            for source in [
                ConfigurationTests.problems(flags: [.bus: [url]]),
                ConfigurationTests.problems("cluster.bus = \"\(url)\""),
                ConfigurationTests.problems(
                    environment: ConfigurationTests.home.merging(["SWARMKEEPER_CLUSTER_BUS": url]) { $1 }),
            ] {
                #expect(source != "" && !source.contains("s3cret") && !source.contains("admin"), "\(url)")
            }
        }
    }
}

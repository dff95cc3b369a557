/// The flags of `tracker serve`: one for each setting, with the name and the help that the table of settings gives it.

import ArgumentParser
import Settings

struct ServeFlags: ParsableArguments {
    @Option(name: .flag(.id), help: .of(.id)) var id: String?
    @Option(name: .flag(.bus), help: .of(.bus)) var bus: String?
    @Option(name: .flag(.clusterKeyFile), help: .of(.clusterKeyFile)) var clusterKeyFile: String?
    @Option(name: .flag(.clusterName), help: .of(.clusterName)) var clusterName: String?
    @Option(name: .flag(.profile), help: .of(.profile)) var profile: String?
    @Option(name: .flag(.members), parsing: .singleValue, help: .of(.members)) var members: [String] = []
    @Flag(name: .flag(.spare), inversion: .prefixedNo, help: .of(.spare)) var spare: Bool?
    @Option(name: .flag(.mode), help: .of(.mode)) var mode: String?
    @Option(name: .flag(.election), help: .of(.election)) var election: String?
    @Option(name: .flag(.vote), help: .of(.vote)) var vote: String?
    @Option(name: .flag(.votePatience), help: .of(.votePatience)) var votePatience: String?
    @Option(name: .flag(.keepalive), help: .of(.keepalive)) var keepalive: String?
    @Option(name: .flag(.missed), help: .of(.missed)) var missed: String?
    @Option(name: .flag(.entry), help: .of(.entry)) var entry: String?
    @Option(name: .flag(.group), parsing: .singleValue, help: .of(.group)) var group: [String] = []
    @Option(name: .flag(.interface), help: .of(.interface)) var interface: String?
    @Option(name: .flag(.onMaster), help: .of(.onMaster)) var onMaster: String?
    @Option(name: .flag(.onSlave), help: .of(.onSlave)) var onSlave: String?
    @Option(name: .flag(.advertise), help: .of(.advertise)) var advertise: String?
    @Option(name: .flag(.udp), parsing: .singleValue, help: .of(.udp)) var udp: [String] = []
    @Option(name: .flag(.http), parsing: .singleValue, help: .of(.http)) var http: [String] = []
    @Option(name: .flag(.console), help: .of(.console)) var console: String?
    @Option(name: .flag(.consoleTokenFile), help: .of(.consoleTokenFile)) var consoleTokenFile: String?
    @Option(name: .flag(.dataDirectory), help: .of(.dataDirectory)) var dataDirectory: String?
    @Option(name: .flag(.durability), help: .of(.durability)) var durability: String?
    @Flag(name: .flag(.keepSwarms), inversion: .prefixedNo, help: .of(.keepSwarms)) var keepSwarms: Bool?
    @Option(name: .flag(.interval), help: .of(.interval)) var interval: String?
    @Option(name: .flag(.minInterval), help: .of(.minInterval)) var minInterval: String?
    @Option(name: .flag(.intervalJitter), help: .of(.intervalJitter)) var intervalJitter: String?
    @Option(name: .flag(.targetRate), help: .of(.targetRate)) var targetRate: String?
    @Option(name: .flag(.peerLifetime), help: .of(.peerLifetime)) var peerLifetime: String?
    @Option(name: .flag(.numWant), help: .of(.numWant)) var numWant: String?
    @Option(name: .flag(.maxNumWant), help: .of(.maxNumWant)) var maxNumWant: String?
    @Option(name: .flag(.trusted), parsing: .singleValue, help: .of(.trusted)) var trusted: [String] = []
    @Option(name: .flag(.accessMode), help: .of(.accessMode)) var accessMode: String?
    @Option(name: .flag(.accessList), help: .of(.accessList)) var accessList: String?
    @Option(name: .flag(.users), help: .of(.users)) var users: String?
    @Option(name: .flag(.torrentsDirectory), help: .of(.torrentsDirectory)) var torrentsDirectory: String?
    @Option(name: .flag(.limitTorrents), help: .of(.limitTorrents)) var limitTorrents: String?
    @Option(name: .flag(.limitPeers), help: .of(.limitPeers)) var limitPeers: String?
    @Option(name: .flag(.limitPeersPerAddress), help: .of(.limitPeersPerAddress)) var limitPeersPerAddress: String?
    @Option(name: .flag(.limitAddressShare), help: .of(.limitAddressShare)) var limitAddressShare: String?
    @Option(name: .flag(.limitErrors), help: .of(.limitErrors)) var limitErrors: String?
    @Option(name: .flag(.limitUpdates), help: .of(.limitUpdates)) var limitUpdates: String?
    @Option(name: .flag(.limitRegistered), help: .of(.limitRegistered)) var limitRegistered: String?
    @Option(name: .flag(.limitListed), help: .of(.limitListed)) var limitListed: String?
    @Option(name: .flag(.limitUsers), help: .of(.limitUsers)) var limitUsers: String?
    @Option(name: .flag(.logLevel), help: .of(.logLevel)) var logLevel: String?
    @Option(name: .flag(.logFormat), help: .of(.logFormat)) var logFormat: String?

    /// What was given, by setting.
    var values: [SettingKey: [String]] {
        var values: [SettingKey: [String]] = [:]
        for key in SettingKey.allCases {
            let given = self.given(key)
            if !given.isEmpty { values[key] = given }
        }
        return values
    }

    /// Not to be compiled while a setting has no flag.
    private func given(_ key: SettingKey) -> [String] {
        func one(_ value: String?) -> [String] { value.map { [$0] } ?? [] }
        return switch key {
        case .id: one(id)
        case .bus: one(bus)
        case .clusterKeyFile: one(clusterKeyFile)
        case .clusterName: one(clusterName)
        case .profile: one(profile)
        case .members: members
        case .spare: one(spare.map { String($0) })
        case .mode: one(mode)
        case .election: one(election)
        case .vote: one(vote)
        case .votePatience: one(votePatience)
        case .keepalive: one(keepalive)
        case .missed: one(missed)
        case .entry: one(entry)
        case .group: group
        case .interface: one(interface)
        case .onMaster: one(onMaster)
        case .onSlave: one(onSlave)
        case .advertise: one(advertise)
        case .udp: udp
        case .http: http
        case .console: one(console)
        case .consoleTokenFile: one(consoleTokenFile)
        case .dataDirectory: one(dataDirectory)
        case .durability: one(durability)
        case .keepSwarms: one(keepSwarms.map { String($0) })
        case .interval: one(interval)
        case .minInterval: one(minInterval)
        case .intervalJitter: one(intervalJitter)
        case .targetRate: one(targetRate)
        case .peerLifetime: one(peerLifetime)
        case .numWant: one(numWant)
        case .maxNumWant: one(maxNumWant)
        case .trusted: trusted
        case .accessMode: one(accessMode)
        case .accessList: one(accessList)
        case .users: one(users)
        case .torrentsDirectory: one(torrentsDirectory)
        case .limitTorrents: one(limitTorrents)
        case .limitPeers: one(limitPeers)
        case .limitPeersPerAddress: one(limitPeersPerAddress)
        case .limitAddressShare: one(limitAddressShare)
        case .limitErrors: one(limitErrors)
        case .limitUpdates: one(limitUpdates)
        case .limitRegistered: one(limitRegistered)
        case .limitListed: one(limitListed)
        case .limitUsers: one(limitUsers)
        case .logLevel: one(logLevel)
        case .logFormat: one(logFormat)
        }
    }
}

extension NameSpecification {
    fileprivate static func flag(_ key: SettingKey) -> Self { .customLong(Setting.of(key).flag) }
}

extension ArgumentHelp {
    fileprivate static func of(_ key: SettingKey) -> Self {
        let setting = Setting.of(key)
        return ArgumentHelp("\(setting.help)", valueName: setting.valueName.lowercased())
    }
}

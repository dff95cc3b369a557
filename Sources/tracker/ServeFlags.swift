// The flags of `tracker serve`.

import ArgumentParser
import Settings

/// The flags of `tracker serve`: one for each line of the table of settings, with the name and the help that it gives.
///
/// They are not properties, each of which would have to be named here. swift-argument-parser finds flags in the mirror
/// of a type and decodes them by the names that stand there; so the mirror is made from the table, and what is decoded
/// lands in a dictionary.
struct ServeFlags: ParsableArguments {
    /// What was given, by setting.
    private(set) var values: [SettingKey: [String]] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingName.self)
        for setting in Setting.all {
            let name = SettingName(setting)
            let given: [String] =
                switch setting.kind {
                case .toggle:
                    try container.decode(Flag<Bool?>.self, forKey: name).wrappedValue.map { [String($0)] } ?? []
                case .list: try container.decode(Option<[String]>.self, forKey: name).wrappedValue
                case .single: try container.decode(Option<String?>.self, forKey: name).wrappedValue.map { [$0] } ?? []
                }
            if !given.isEmpty { values[setting.key] = given }
        }
    }
}

extension ServeFlags: CustomReflectable {
    var customMirror: Mirror {
        Mirror(self, children: Setting.all.map { (label: SettingName($0).stringValue, value: $0.argument) })
    }
}

extension Setting {
    fileprivate enum Kind {
        /// `--spare`, `--no-spare`.
        case toggle
        /// May be given several times.
        case list
        case single
    }

    fileprivate var kind: Kind { valueName.isEmpty ? .toggle : isList ? .list : .single }

    /// What swift-argument-parser is to know of its flag: a property wrapper without a property.
    fileprivate var argument: Any {
        let name = NameSpecification.customLong(flag)
        let help = ArgumentHelp("\(self.help)", valueName: valueName.lowercased())
        return switch kind {
        case .toggle: Flag<Bool?>(name: name, inversion: .prefixedNo, help: help)
        case .list: Option<[String]>(wrappedValue: [], name: name, parsing: .singleValue, help: help)
        case .single: Option<String?>(name: name, help: help)
        }
    }
}

/// The name under which a setting's flag is decoded.
private struct SettingName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ setting: Setting) { stringValue = setting.key.path }

    init?(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
}

// `tracker user`.

import ArgumentParser
import Client
import Foundation
import Settings
import Web
import Wire

/// `tracker user`: who may log in at the console.
struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Make, change and remove accounts of the console.",
        discussion: """
            Accounts are kept by the whole cluster: give the order to any tracker's console. As soon as there is one, \
            everybody has to log in; the first has to be an admin. A password is asked for on the terminal, or read \
            from a file; it is never an argument, which others on this machine could see.
            """,
        subcommands: [Add.self, Password.self, Remove.self, List.self, Hash.self, Passkey.self])

    /// Where a password comes from.
    struct PasswordSource: ParsableArguments {
        @Option(
            name: .customLong("password-file"),
            help: ArgumentHelp("Read the password from the first line of this file.", valueName: "file"))
        var file: String?

        /// - Throws: `Failure` where there is none.
        func read() throws -> String {
            if let file {
                let bytes = try Failure.telling(.system) { try BoundedFile.read(file, atMost: 4096) }
                let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
                guard let text = String(validating: line, as: UTF8.self), !text.isEmpty else {
                    throw Failure(.usage, "\(file) has no password in its first line")
                }
                return text
            }
            guard isatty(STDIN_FILENO) == 1 else {
                throw Failure(
                    .usage, "there is no terminal to ask for the password on; name a file by --password-file")
            }
            let first = try ask("Password: ")
            guard try ask("Once more: ") == first else { throw Failure(.usage, "the two are not the same") }
            return first
        }

        /// Asks without showing what is typed.
        private func ask(_ question: String) throws -> String {
            guard let typed = getpass(question) else { throw Failure(.system, "the terminal cannot be read") }
            defer { memset(typed, 0, strlen(typed)) }
            let text = String(cString: typed)
            guard !text.isEmpty else { throw Failure(.usage, "the password is empty") }
            return text
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Make an account.",
            discussion: "Roles: viewer, uploader, operator, admin; each may do all that the ones before it may.")

        @Argument(help: "Its name.") var name: String
        @Option(help: "What it may do.") var role: String
        @OptionGroup var password: PasswordSource
        @OptionGroup var options: ClusterConsoles

        func run() async throws {
            let password = try password.read()
            try await UserCommand.order(options) { (console) throws(TrackerClientError) in
                try await console.putUser(name, role: role, password: password, mustBeNew: true)
            }
            Terminal.output.write("The account \(name) is made: \(role).\n")
        }
    }

    struct Password: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "passwd", abstract: "Change an account's password; all its sessions end.")

        @Argument(help: "Its name.") var name: String
        @OptionGroup var password: PasswordSource
        @OptionGroup var options: ClusterConsoles

        func run() async throws {
            let password = try password.read()
            try await UserCommand.order(options) { (console) throws(TrackerClientError) in
                try await console.putUser(name, role: nil, password: password, mustBeNew: false)
            }
            Terminal.output.write("The password of \(name) is changed.\n")
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Remove an account; the last admin stays.")

        @Argument(help: "Its name.") var name: String
        @OptionGroup var options: ClusterConsoles

        func run() async throws {
            try await UserCommand.order(options) { (console) throws(TrackerClientError) in
                try await console.removeUser(name)
            }
            Terminal.output.write("The account \(name) is removed.\n")
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "List all accounts.")

        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        func run() async throws {
            let console = try await options.first().client
            do throws(TrackerClientError) {
                let users = try await console.users()
                if report.isJSON {
                    try? report.writeJSON(users)
                } else if users.isEmpty {
                    Terminal.output.write("There are no accounts: whoever is on a tracker's machine may do all.\n")
                } else {
                    var table = TextTable(.left, .left, .left, .left)
                    table.add("name", "role", "from", "passkey")
                    for user in users { table.add(user.name, user.role, user.origin, user.hasPasskey ? "yes" : "–") }
                    Terminal.output.write(table.text { Terminal.output.styled($0, .bold) })
                }
            } catch {
                throw Failure(error)
            }
        }
    }

    struct Hash: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hash", abstract: "Print an account's line for a file of accounts (--console-accounts-file).",
            discussion: "Nobody is asked: the account is there when trackers have read the file, at a start or SIGHUP.")

        @Argument(help: "Its name.") var name: String
        @Option(help: "What it may do.") var role: String
        @OptionGroup var password: PasswordSource

        func run() async throws {
            guard Account.isName(name) else { throw Failure(.usage, Account.nameRule) }
            guard let role = AccountRole(word: role) else {
                let known = AccountRole.allCases.map(\.word).joined(separator: ", ")
                throw Failure(.usage, "--role has to be one of \(known)")
            }
            let password = try password.read()
            guard PasswordHasher.isAcceptable(password) else { throw Failure(.usage, PasswordHasher.passwordRule) }
            let account = Account(
                name: Array(name.utf8), role: role, origin: .file, password: await PasswordHasher().hash(password))
            guard let line = AccountFile.line(account) else { throw Failure(.system, "the password cannot be hashed") }
            Terminal.output.write(line + "\n")
        }
    }

    struct Passkey: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "passkey", abstract: "Give an account a new passkey for a private tracker, and print it.",
            discussion: """
                Clients announce with it where the trackers are private (--access private). An older one of the \
                account lets nobody in from then on: torrents with it in their announce URL have to be downloaded or \
                edited anew.
                """)

        @Argument(help: "The account's name.") var name: String
        @Flag(help: "Take the passkey away, and make no other.") var remove = false
        @OptionGroup var options: ClusterConsoles
        @OptionGroup var report: ReportOptions

        func run() async throws {
            let console = try await options.first().client
            do throws(TrackerClientError) {
                let made = try await console.setPasskey(of: name, isRemoved: remove)
                if report.isJSON {
                    try? report.writeJSON(made)
                } else if let passkey = made.passkey {
                    Terminal.output.write(([passkey] + made.announce).joined(separator: "\n") + "\n")
                } else {
                    Terminal.output.write("The account \(name) has no passkey any more.\n")
                }
            } catch {
                throw Failure(error)
            }
        }
    }

    private static func order(
        _ options: ClusterConsoles, _ body: (ConsoleClient) async throws(TrackerClientError) -> Void
    ) async throws {
        let console = try await options.first().client
        do throws(TrackerClientError) {
            try await body(console)
        } catch {
            throw Failure(error)
        }
    }
}

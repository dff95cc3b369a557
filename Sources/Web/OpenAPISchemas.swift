/// The schemas of the API's description: what each answer is made of.

extension OpenAPIDocument {
    static let schemas = """
          schemas:
            Status:
              type: object
              required: [version, processID, startedAt, uptimeSeconds, listeners, node, cluster]
              properties:
                version:
                  type: string
                processID:
                  type: integer
                startedAt:
                  type: string
                  format: date-time
                uptimeSeconds:
                  type: number
                listeners:
                  type: array
                  items:
                    $ref: "#/components/schemas/Listener"
                advertised:
                  type: string
                  description: The announce URL under which clients reach this tracker, where its operator has told it.
                node:
                  $ref: "#/components/schemas/Node"
                cluster:
                  $ref: "#/components/schemas/Cluster"
            Listener:
              type: object
              required: [service, address]
              properties:
                service:
                  type: string
                  enum: [udp, http, api]
                address:
                  type: string
                  description: Address and port, such as 0.0.0.0:6969 or [::]:6969.
            Node:
              type: object
              required:
                - id
                - role
                - epoch
                - commitIndex
                - lastIndex
                - digest
                - accessMode
                - torrents
                - peers
                - peersIPv4
                - peersIPv6
                - seeders
                - registeredTorrents
                - intervalSeconds
                - waitingRequests
                - counters
              properties:
                id:
                  type: integer
                  description: This tracker's number.
                role:
                  type: string
                  enum: [restoring, newcomer, slave, candidate, master, draining, failed, stopped]
                epoch:
                  $ref: "#/components/schemas/Epoch"
                commitIndex:
                  type: integer
                  format: int64
                  description: The last log entry that was decided and applied.
                lastIndex:
                  type: integer
                  format: int64
                  description: The last log entry.
                digest:
                  type: string
                  description: >-
                    The state's fingerprint, 16 hexadecimal digits: equal on trackers that hold the same at the same index.
                accessMode:
                  type: string
                  enum: [open, allow, deny, private]
                torrents:
                  type: integer
                  description: Torrents with peers or counts.
                peers:
                  type: integer
                  description: Peers of all swarms.
                peersIPv4:
                  type: integer
                peersIPv6:
                  type: integer
                seeders:
                  type: integer
                  description: Peers that have everything.
                registeredTorrents:
                  type: integer
                  description: Torrents in the registry.
                intervalSeconds:
                  type: integer
                  description: How often clients are asked to announce now.
                waitingRequests:
                  type: integer
                  description: Requests that wait for their log entry.
                counters:
                  $ref: "#/components/schemas/Counters"
            Epoch:
              type: object
              description: The term of one master; totally ordered, never used twice.
              required: [round, id]
              properties:
                round:
                  type: integer
                  format: int64
                id:
                  type: integer
                  description: The id of the tracker that stood for it.
            Counters:
              type: object
              description: Totals since the process started.
              required:
                - connects
                - announces
                - scrapes
                - errors
                - errorsWithheld
                - ignored
                - dropped
                - timedOut
                - entries
                - updates
                - expired
                - completed
              properties:
                connects:
                  type: integer
                  format: int64
                  description: Connection ids given out (BEP 15).
                announces:
                  type: integer
                  format: int64
                scrapes:
                  type: integer
                  format: int64
                errors:
                  type: integer
                  format: int64
                  description: Requests answered with an error.
                errorsWithheld:
                  type: integer
                  format: int64
                  description: Errors withheld by the limit per address.
                ignored:
                  type: integer
                  format: int64
                  description: Datagrams that got silence, being junk or forged.
                dropped:
                  type: integer
                  format: int64
                  description: Requests dropped because too many were waiting.
                timedOut:
                  type: integer
                  format: int64
                  description: Requests given up because nobody could answer them in time.
                entries:
                  type: integer
                  format: int64
                  description: Log entries applied.
                updates:
                  type: integer
                  format: int64
                  description: Updates applied.
                expired:
                  type: integer
                  format: int64
                  description: Peers taken out because they fell silent.
                completed:
                  type: integer
                  format: int64
                  description: Downloads completed.
            Torrents:
              type: object
              required: [total, offset, torrents]
              properties:
                total:
                  type: integer
                  description: Torrents that match, on all pages.
                offset:
                  type: integer
                torrents:
                  type: array
                  items:
                    $ref: "#/components/schemas/Torrent"
            Torrent:
              type: object
              required: [infoHash, name, byteCount, seeders, leechers, completed]
              properties:
                infoHash:
                  type: string
                  description: 40 hexadecimal digits.
                name:
                  type: string
                byteCount:
                  type: integer
                  format: int64
                seeders:
                  type: integer
                leechers:
                  type: integer
                completed:
                  type: integer
            Error:
              type: object
              required: [error]
              properties:
                error:
                  type: string
                  description: What is wrong, and what to do.

        """
}

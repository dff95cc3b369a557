/// The description of the API, as it serves it.
///
/// docs/openapi.yaml is the same text. A test compares the two, and the keys of the schemas with those of real answers;
/// `REWRITE=1` writes the file anew.

enum OpenAPIDocument {
    static let text = paths + clusterPaths + otherPaths + schemas + clusterSchemas

    private static let paths = """
        openapi: 3.0.3
        info:
          title: Swarmkeeper
          version: "1"
          description: >-
            The state of one tracker and of its cluster as it sees it, and the orders that a cluster takes: its master
            carries them out. Keys are not renamed or taken away; new ones may come.
        servers:
          - url: http://127.0.0.1:6970
        security:
          - token: []
        paths:
          /api/status:
            get:
              operationId: status
              summary: What this tracker is, does and holds.
              responses:
                "200":
                  description: The status as of now.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Status"
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
                "503":
                  $ref: "#/components/responses/Unavailable"

        """

    private static let otherPaths = """
          /api/torrents:
            get:
              operationId: torrents
              summary: The registered torrents, page by page.
              parameters:
                - name: search
                  in: query
                  description: Part of a name or of an info hash, in either case; up to 256 bytes.
                  schema:
                    type: string
                - name: offset
                  in: query
                  description: Torrents to be skipped.
                  schema:
                    type: integer
                    minimum: 0
                    maximum: 1000000000
                    default: 0
                - name: count
                  in: query
                  description: Torrents on this page at most.
                  schema:
                    type: integer
                    minimum: 1
                    maximum: 500
                    default: 50
              responses:
                "200":
                  description: A page; beyond the end an empty one.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Torrents"
                "400":
                  description: A parameter makes no sense; the error says which.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Error"
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
                "503":
                  $ref: "#/components/responses/Unavailable"
          /api/openapi.yaml:
            get:
              operationId: description
              summary: This description.
              responses:
                "200":
                  description: OpenAPI 3.
                  content:
                    application/yaml:
                      schema:
                        type: string
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
          /metrics:
            get:
              operationId: metrics
              summary: The same figures and more, for Prometheus.
              responses:
                "200":
                  description: Text format 0.0.4.
                  content:
                    text/plain:
                      schema:
                        type: string
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
          /healthz:
            get:
              operationId: health
              summary: Whether this tracker answers announces. Needs no token.
              security: []
              responses:
                "200":
                  description: It does. The text is its role.
                  content:
                    text/plain:
                      schema:
                        type: string
                "503":
                  description: It does not. The text is its role, or says that its logic does not answer.
                  content:
                    text/plain:
                      schema:
                        type: string
        components:
          securitySchemes:
            token:
              type: http
              scheme: bearer
              description: >-
                Where a token is configured. Without one the API listens on loopback only, and answers only requests whose
                Host header names loopback.
          responses:
            Unauthorized:
              description: The token is missing or wrong.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"
            Forbidden:
              description: The Host header names another machine, as it does in a DNS rebinding attack.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"
            BadRequest:
              description: A parameter makes no sense; the error says which.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"
            Refused:
              description: It cannot be done, or not by this tracker; the error says why.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"
            Late:
              description: It has not come to pass so far; it may still.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"
            Unavailable:
              description: The tracker's logic or its registry does not answer in time.
              content:
                application/json:
                  schema:
                    $ref: "#/components/schemas/Error"

        """
}

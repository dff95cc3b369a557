-- Wireshark and tshark: what BitTorrent clients and trackers say to each other over UDP (BEP 15), and what the trackers
-- of a Swarmkeeper cluster say to each other: frames of the multicast bus, messages, and the entries of the log.
--
-- tshark -X lua_script:swarmkeeper.lua -r FILE; README.md tells more. docs/protocol.md and docs/bus.md say what the
-- messages mean; the bytes are those of version 1 of frames, version 3 of messages, and version 2 of entries.

local function hex(range) return (range:bytes():tohex(true)) end

-- Numbers of 64 bits in decimal.
local function whole(range) return tostring(range:uint64()) end

local function counted(count, noun) return string.format("%d %s%s", count, noun, count == 1 and "" or "s") end

-- What makes the fields of a protocol, and what gives them to it; that may be done once.
local function fields(proto, prefix)
    local all = {}
    local function field(kind, name, title, ...)
        all[#all + 1] = ProtoField[kind](prefix .. "." .. name, title, ...)
        return all[#all]
    end
    return field, function() proto.fields = all end
end

----------------------------------------------------------------------------------------------------------------------
-- BEP 15

local bep15 = Proto("bep15", "BitTorrent UDP tracker protocol (BEP 15)")
bep15.prefs.port = Pref.uint("Port of the trackers", 6969, "UDP port on which trackers listen")

local MAGIC = UInt64(0x27101980, 0x417) -- 0x41727101980: low word, high word
local ACTIONS = { [0] = "connect", [1] = "announce", [2] = "scrape", [3] = "error" }
local EVENTS = { [0] = "none", [1] = "completed", [2] = "started", [3] = "stopped" }

local b = {}
do
    local field, done = fields(bep15, "bep15")
    b.direction = field("string", "direction", "Direction")
    b.action = field("uint32", "action", "Action", base.DEC, ACTIONS)
    b.transaction = field("uint32", "transaction_id", "Transaction id", base.HEX)
    b.connection = field("uint64", "connection_id", "Connection id", base.HEX)
    b.hash = field("bytes", "info_hash", "Info hash")
    b.peer = field("bytes", "peer_id", "Peer id")
    b.downloaded = field("uint64", "downloaded", "Downloaded", base.DEC)
    b.left = field("uint64", "left", "Left", base.DEC)
    b.uploaded = field("uint64", "uploaded", "Uploaded", base.DEC)
    b.event = field("uint32", "event", "Event", base.DEC, EVENTS)
    b.address = field("ipv4", "ip", "IP address (0: the sender's)")
    b.key = field("uint32", "key", "Key", base.HEX)
    b.wanted = field("int32", "num_want", "Peers wanted", base.DEC)
    b.port = field("uint16", "port", "Port", base.DEC)
    b.options = field("bytes", "options", "Options (BEP 41)")
    b.interval = field("uint32", "interval", "Interval in seconds", base.DEC)
    b.leechers = field("uint32", "leechers", "Leechers", base.DEC)
    b.seeders = field("uint32", "seeders", "Seeders", base.DEC)
    b.completed = field("uint32", "completed", "Completed", base.DEC)
    b.found = field("string", "found", "Peer")
    b.message = field("string", "message", "Message")
    done()
end
local bad_length = ProtoExpert.new("bep15.length", "The length is wrong", expert.group.MALFORMED, expert.severity.WARN)
bep15.experts = { bad_length }

local function request(tvb, tree)
    local size = tvb:len()
    tree:add(b.connection, tvb(0, 8))
    local action = tvb(8, 4):uint()
    tree:add(b.action, tvb(8, 4))
    tree:add(b.transaction, tvb(12, 4))
    if action == 0 then return "connect" end
    if action == 1 then
        if size < 98 then
            tree:add_proto_expert_info(bad_length)
            return "announce, too short"
        end
        tree:add(b.hash, tvb(16, 20))
        tree:add(b.peer, tvb(36, 20))
        tree:add(b.downloaded, tvb(56, 8))
        tree:add(b.left, tvb(64, 8))
        tree:add(b.uploaded, tvb(72, 8))
        tree:add(b.event, tvb(80, 4))
        tree:add(b.address, tvb(84, 4))
        tree:add(b.key, tvb(88, 4))
        tree:add(b.wanted, tvb(92, 4))
        tree:add(b.port, tvb(96, 2))
        if size > 98 then tree:add(b.options, tvb(98)) end
        local event = tvb(80, 4):uint()
        local said = event > 0 and (EVENTS[event] or event) .. ", " or ""
        return string.format("announce %s (%sleft %s)", hex(tvb(16, 20)), said, whole(tvb(64, 8)))
    end
    if action == 2 then
        local count = math.floor((size - 16) / 20)
        for place = 0, count - 1 do tree:add(b.hash, tvb(16 + 20 * place, 20)) end
        if (size - 16) % 20 ~= 0 then tree:add_proto_expert_info(bad_length) end
        return "scrape of " .. counted(count, "swarm")
    end
    return "no action of BEP 15"
end

local function endpoint(range, is_ipv6)
    local size = is_ipv6 and 16 or 4
    local address = is_ipv6 and "[" .. tostring(range(0, 16):ipv6()) .. "]" or tostring(range(0, 4):ipv4())
    return address .. ":" .. range(size, 2):uint()
end

local function reply(tvb, tree, is_ipv6)
    local size = tvb:len()
    local action = tvb(0, 4):uint()
    tree:add(b.action, tvb(0, 4))
    tree:add(b.transaction, tvb(4, 4))
    if action == 0 and size >= 16 then
        tree:add(b.connection, tvb(8, 8))
        return "connected"
    end
    if action == 1 and size >= 20 then
        tree:add(b.interval, tvb(8, 4))
        tree:add(b.leechers, tvb(12, 4))
        tree:add(b.seeders, tvb(16, 4))
        local step = is_ipv6 and 18 or 6
        local count = math.floor((size - 20) / step)
        for place = 0, count - 1 do
            local range = tvb(20 + step * place, step)
            tree:add(b.found, range, endpoint(range, is_ipv6))
        end
        if (size - 20) % step ~= 0 then tree:add_proto_expert_info(bad_length) end
        return string.format(
            "announced: %s, %s seeding, %s leeching", counted(count, "peer"), tvb(16, 4):uint(), tvb(12, 4):uint())
    end
    if action == 2 then
        local count = math.floor((size - 8) / 12)
        for place = 0, count - 1 do
            tree:add(b.seeders, tvb(8 + 12 * place, 4))
            tree:add(b.completed, tvb(12 + 12 * place, 4))
            tree:add(b.leechers, tvb(16 + 12 * place, 4))
        end
        return "scraped " .. counted(count, "swarm")
    end
    if action == 3 then
        local text = size > 8 and tvb(8):string() or ""
        if size > 8 then tree:add(b.message, tvb(8)) end
        return "error: " .. text
    end
    tree:add_proto_expert_info(bad_length)
    return "no reply of BEP 15"
end

-- Trackers that were found by a connect request: "address:port".
local found = {}
function bep15.init() found = {} end

function bep15.dissector(tvb, pinfo, root)
    local size = tvb:len()
    local is_request = pinfo.dst_port == bep15.prefs.port or found[tostring(pinfo.net_dst) .. ":" .. pinfo.dst_port]
    if size < (is_request and 16 or 8) then return 0 end
    local tree = root:add(bep15, tvb())
    tree:add(b.direction, is_request and "request" or "reply"):set_generated()
    local is_ipv6 = tostring(pinfo.net_src):find(":", 1, true) ~= nil
    local text = is_request and request(tvb, tree) or reply(tvb, tree, is_ipv6)
    pinfo.cols.protocol = "BEP 15"
    pinfo.cols.info = text
    tree:append_text(": " .. text)
    return size
end

-- Trackers on other ports are known by the first datagram that a client sends.
bep15:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() ~= 16 or tvb(0, 8):uint64() ~= MAGIC or tvb(8, 4):uint() ~= 0 then return false end
    found[tostring(pinfo.net_dst) .. ":" .. pinfo.dst_port] = true
    pinfo.conversation = bep15
    bep15.dissector(tvb, pinfo, root)
    return true
end)

----------------------------------------------------------------------------------------------------------------------
-- Entries of the log

local ske = Proto("ske", "Swarmkeeper entry of the log")
local UPDATES = {
    [1] = "announce over IPv4", [2] = "announce over IPv6", [3] = "expire", [4] = "register torrent",
    [5] = "unregister torrent", [6] = "set access mode", [7] = "list info hash", [8] = "unlist info hash",
    [9] = "put user", [10] = "remove user", [11] = "set members", [12] = "merge peer", [13] = "merge stop",
    [14] = "merge completed", [15] = "interval", [16] = "empty shard",
    [17] = "console",
}
local e = {}
do
    local field, done = fields(ske, "ske")
    e.version = field("uint8", "version", "Version", base.DEC)
    e.index = field("uint64", "index", "Index", base.DEC)
    e.time = field("uint64", "time", "Cluster time in ms since 1970", base.DEC)
    e.origin = field("uint32", "origin", "Made by tracker", base.DEC)
    e.count = field("uint32", "updates", "Updates", base.DEC)
    e.tickets = field("uint32", "tickets_offset", "Tickets begin at", base.DEC)
    e.previous = field("uint64", "previous", "Chain of all before", base.HEX)
    e.epoch = field("string", "epoch", "Epoch of its ballot")
    e.attempt = field("uint32", "attempt", "Attempt", base.DEC, nil, 0x7FFFFFFF)
    e.alone = field("bool", "alone", "Its master decides alone", 32, nil, 0x80000000)
    e.checksum = field("uint64", "checksum", "Checksum", base.HEX)
    e.update = field("uint8", "update", "Update", base.DEC, UPDATES)
    e.hash = field("bytes", "info_hash", "Info hash")
    e.event = field("uint8", "event", "Event", base.DEC, EVENTS)
    e.left = field("uint64", "left", "Left", base.DEC)
    e.peer = field("string", "peer", "Peer")
    e.member = field("uint32", "member", "Voter", base.DEC)
    e.waiting = field("bytes", "tickets", "Tickets")
    done()
end

-- Where what begins with its length in two bytes ends.
local function behind(tvb, at) return at + 2 + tvb(at, 2):uint() end

local function account(tvb, at)
    at = behind(tvb, at) + 2
    local has = tvb(at, 1):uint()
    at = at + 1
    if has % 2 == 1 then at = behind(tvb, behind(tvb, at + 3)) end
    if has >= 2 then at = behind(tvb, at) end
    return at
end

local function session(tvb, at) return behind(tvb, behind(tvb, at + 32) + 5) end

local function file_head(tvb, at) return behind(tvb, at + 28) + 8 + 4 + 32 + 1 end

-- Where a change at the console ends, of the kinds of ConsoleUpdate; nil where that cannot be told.
local CONSOLE = {
    [1] = account, [2] = behind, [3] = session,
    [4] = function(_, at) return at + 32 end,
    [5] = function(_, at) return at + 4 end,
    [6] = function(tvb, at) return behind(tvb, at + 28 + 8) end,
    [7] = file_head,
    [8] = function(_, at) return at + 28 end,
    [9] = function(_, at) return at + 8 end,
    [10] = function(_, at) return at + 20 end,
    [11] = function(tvb, at) return account(tvb, at) + 4 end,
    [12] = function(tvb, at) return behind(tvb, at) + 4 end,
    [13] = function(tvb, at) return file_head(tvb, at) + 4 end,
    [14] = function(_, at) return at + 24 end,
}

-- The length of an update with its kind; nil where it cannot be told.
local function update_length(tvb, at)
    local kind = tvb(at, 1):uint()
    local fixed = {
        [1] = 64, [2] = 76, [3] = 13, [5] = 21, [6] = 2, [7] = 21, [8] = 21, [12] = 84, [13] = 47, [14] = 29, [15] = 5,
        [16] = 5,
    }
    if fixed[kind] then return fixed[kind] end
    if kind == 4 then return 31 + tvb(at + 29, 2):uint() end
    if kind == 10 then return 3 + tvb(at + 1, 2):uint() end
    if kind == 11 then return 2 + 4 * tvb(at + 1, 1):uint() end
    if kind == 9 then
        local name = tvb(at + 1, 2):uint()
        return 5 + name + tvb(at + 3 + name, 2):uint()
    end
    if kind == 17 then
        local ends = CONSOLE[tvb(at + 1, 1):uint()]
        return ends and ends(tvb, at + 2) - at
    end
    return nil
end

local HASHED = { [4] = true, [5] = true, [7] = true, [8] = true, [12] = true, [13] = true, [14] = true }

local function updates(tvb, tree, first, last)
    local at = first
    while at < last do
        local length = update_length(tvb, at)
        if not length or at + length > last then return end
        local kind = tvb(at, 1):uint()
        local node = tree:add(e.update, tvb(at, 1))
        if kind == 1 or kind == 2 then
            node:add(e.event, tvb(at + 1, 1))
            node:add(e.hash, tvb(at + 2, 20))
            node:add(e.left, tvb(at + 50, 8))
            local place = tvb(at + 58, length - 58)
            node:add(e.peer, place, endpoint(place, kind == 2))
        elseif HASHED[kind] then
            node:add(e.hash, tvb(at + 1, 20))
        elseif kind == 11 then
            for place = 0, tvb(at + 1, 1):uint() - 1 do node:add(e.member, tvb(at + 2 + 4 * place, 4)) end
        end
        at = at + length
    end
end

-- Returns the entry in a few words.
local function entry(tvb, tree)
    if tvb:len() < 64 then return "an entry that is too short" end
    local node = tree:add(ske, tvb())
    node:add(e.version, tvb(3, 1))
    node:add(e.index, tvb(4, 8))
    node:add(e.time, tvb(12, 8))
    node:add(e.origin, tvb(20, 4))
    node:add(e.count, tvb(24, 4))
    node:add(e.tickets, tvb(28, 4))
    node:add(e.previous, tvb(32, 8))
    node:add(e.epoch, tvb(40, 12), whole(tvb(40, 8)) .. "." .. tvb(48, 4):uint())
    node:add(e.alone, tvb(52, 4))
    node:add(e.attempt, tvb(52, 4))
    node:add(e.checksum, tvb(56, 8))
    local last = math.min(tvb(28, 4):uint(), tvb:len())
    updates(tvb, node, 64, last)
    if last < tvb:len() then node:add(e.waiting, tvb(last)) end
    local text = string.format("entry %s (%s)", whole(tvb(4, 8)), counted(tvb(24, 4):uint(), "update"))
    node:append_text(": " .. text)
    return text
end

----------------------------------------------------------------------------------------------------------------------
-- Messages between trackers

local skm = Proto("skm", "Swarmkeeper message between trackers")
local KINDS = {
    [1] = "KEEPALIVE", [2] = "SUSPECT", [3] = "ELECTION", [4] = "ANSWER", [5] = "COORDINATOR", [6] = "PREPARE",
    [7] = "OK", [8] = "ERROR", [9] = "COMMIT", [10] = "CONFIRM", [11] = "CONFIRMED", [12] = "FETCH",
    [13] = "ENTRIES", [14] = "HELLO", [15] = "WELCOME", [16] = "REFUSED", [17] = "FETCH-CHUNK", [18] = "CHUNK",
    [19] = "WELCOME-DONE", [20] = "FORWARD", [21] = "ANSWERED", [22] = "HANDOVER", [23] = "LEAVE",
    [24] = "REPORT", [25] = "ORDER", [26] = "ORDERED", [27] = "STOP",
}
local ROLES = { [0] = "newcomer", [1] = "slave", [2] = "candidate", [3] = "master" }
local REASONS = { [1] = "cannot store it", [2] = "has promised a higher epoch" }
local REFUSALS = { [1] = "the number is taken", [2] = "the cluster is full", [3] = "other members", [4] = "other settings" }
local m = {}
do
    local field, done = fields(skm, "skm")
    m.version = field("uint8", "version", "Version", base.DEC)
    m.sender = field("uint32", "sender", "Sender (0: has no number)", base.DEC)
    m.incarnation = field("uint64", "incarnation", "Incarnation of the sender", base.HEX)
    m.destination = field("uint32", "destination", "For tracker", base.DEC)
    m.life = field("uint64", "destination_incarnation", "Incarnation that it is for", base.HEX)
    m.epoch = field("string", "epoch", "Epoch")
    m.kind = field("uint8", "kind", "Kind", base.DEC, KINDS)
    m.name = field("string", "name", "Name")
    m.index = field("uint64", "index", "At entry", base.DEC)
    m.chain = field("uint64", "chain", "Chain there", base.HEX)
    m.role = field("uint8", "role", "Role", base.DEC, ROLES)
    m.digest = field("uint64", "digest", "Digest of the state", base.HEX)
    m.whole = field("bool", "whole", "Holds the whole state")
    m.blank = field("bool", "blank", "Blank")
    m.settings = field("bytes", "settings", "Fingerprint of the settings")
    m.heard = field("uint32", "heard", "Has heard the blank tracker", base.DEC)
    m.ballot_epoch = field("string", "ballot.epoch", "Epoch of the ballot")
    m.ballot_attempt = field("uint32", "ballot.attempt", "Attempt", base.DEC)
    m.ballot_index = field("uint64", "ballot.index", "Index", base.DEC)
    m.reason = field("uint8", "reason", "Reason", base.DEC, REASONS)
    m.refusal = field("uint8", "refusal", "Refusal", base.DEC, REFUSALS)
    m.round = field("uint64", "round", "Round", base.DEC)
    m.entries = field("uint16", "entries", "Entries", base.DEC)
    m.number = field("uint32", "chunk", "Chunk", base.DEC)
    m.through = field("uint64", "chunk_index", "As of entry", base.DEC)
    m.bytes = field("bytes", "chunk_bytes", "Bytes")
    m.welcomed = field("uint32", "welcomed", "Welcomed as", base.DEC)
    m.serves = field("uint64", "serves_from", "Serves from entry", base.DEC)
    m.attempt = field("uint32", "attempt", "Attempt under way", base.DEC)
    m.left_in_order = field("bool", "left_in_order", "Left in good order")
    m.begins_empty = field("bool", "begins_empty", "Begins without swarms")
    m.transfer = field("bool", "by_transfer", "The whole state has to be fetched")
    m.shards = field("uint32", "shards", "Shards", base.DEC)
    m.floor = field("uint64", "floor", "Waits for none below", base.DEC)
    m.settled = field("uint64", "settled", "None settled up to entry", base.DEC)
    m.requests = field("uint16", "requests", "Requests", base.DEC)
    m.request = field("uint64", "request", "Request", base.DEC)
    m.client = field("string", "client", "Client")
    m.program = field("string", "report.version", "Version of the program")
    m.host = field("string", "report.host", "Host")
    m.clients = field("string", "report.clients", "Where clients find it")
    m.console = field("string", "report.console", "Where its console listens")
    m.problem = field("string", "report.problem", "Why it answers nobody")
    m.rate = field("uint32", "report.announces", "Announces a second", base.DEC)
    m.wall = field("uint64", "report.wall_time", "Its clock, in milliseconds since 1970", base.DEC)
    m.echo = field("uint64", "report.echo", "Echo of a report of the incarnation", base.HEX)
    m.hears = field("uint32", "report.hears", "Hears tracker", base.DEC)
    m.silence = field("uint16", "report.silence", "Silent for seconds, rounded up", base.DEC)
    m.is_up = field("bool", "report.is_up", "Is up for the sender")
    m.hash = field("bytes", "info_hash", "Info hash")
    m.rest = field("bytes", "rest", "Not looked into")
    done()
end
local damaged = ProtoExpert.new("skm.damaged", "The message is damaged", expert.group.MALFORMED, expert.severity.WARN)
skm.experts = { damaged }

-- A cursor over the body of a message.
local Cursor = {}
Cursor.__index = Cursor
function Cursor:take(count)
    local range = self.tvb(self.at, count)
    self.at = self.at + count
    return range
end
function Cursor:add(field, count)
    local range = self:take(count)
    self.tree:add(field, range)
    return range
end
function Cursor:position()
    local index = self:add(m.index, 8)
    self:add(m.chain, 8)
    return whole(index)
end
function Cursor:entry()
    local count = self:take(4):uint()
    if count == 0 then return nil end
    return entry(self:take(count):tvb(), self.tree)
end
function Cursor:ballot()
    local epoch = self:take(12)
    self.tree:add(m.ballot_epoch, epoch, whole(epoch(0, 8)) .. "." .. epoch(8, 4):uint())
    local attempt = self:add(m.ballot_attempt, 4):uint()
    local index = whole(self:add(m.ballot_index, 8))
    return "entry " .. index .. (attempt > 0 and ", attempt " .. attempt or "")
end

-- An address as trackers tell it: 16 bytes, zone, port; IPv4 is ::ffff:a.b.c.d.
local function address(range)
    local is_ipv4 = range(0, 8):uint64() == UInt64(0, 0) and range(8, 4):uint() == 0x0000FFFF
    local host = is_ipv4 and tostring(range(12, 4):ipv4()) or "[" .. tostring(range(0, 16):ipv6()) .. "]"
    return host .. ":" .. range(20, 2):uint()
end

local function forwarded(c)
    local node = c.tree:add(m.request, c:take(8))
    local source = c:take(22)
    node:add(m.client, source, address(source))
    local kind = c:take(1):uint()
    if kind == 0 then
        local datagram = c:take(c:take(2):uint()):tvb()
        if datagram:len() >= 16 then request(datagram, node:add(bep15, datagram())) end
    elseif kind == 1 then
        node:add(m.hash, c:take(20))
        c:take(39)
        c:take(c:take(2):uint())
    else
        for _ = 1, c:take(1):uint() do node:add(m.hash, c:take(20)) end
        c:take(c:take(2):uint())
    end
end

local function answered(c)
    c:add(m.request, 8)
    if c:take(1):uint() == 0 then c:take(12 * c:take(1):uint()) else c:take(1) end
end

local function at(c) return "at entry " .. c:position() end

-- By kind: reads the body, and says it in a few words.
local BODIES = {
    [1] = function(c)
        local role = ROLES[c:add(m.role, 1):uint()] or "?"
        local index = c:position()
        c:add(m.digest, 8)
        local is_whole = c:add(m.whole, 1):uint() == 1
        c:add(m.settings, 52)
        return role .. " at entry " .. index .. (is_whole and "" or ", not whole")
    end,
    [2] = at,
    [4] = function(c)
        local index = c:position()
        local pending = c:entry()
        c:add(m.left_in_order, 1)
        return "at entry " .. index .. (pending and ", has accepted " .. pending:gsub(" %(.*%)", "") or "")
    end,
    [5] = at,
    [6] = function(c)
        local index = c:position()
        return (c:entry() or "?") .. ", decided is " .. index
    end,
    [7] = function(c) return c:ballot() end,
    [8] = function(c)
        local ballot = c:ballot()
        return ballot .. ": " .. (REASONS[c:add(m.reason, 1):uint()] or "?")
    end,
    [9] = function(c) return "through entry " .. c:position() end,
    [10] = function(c) return "round " .. whole(c:add(m.round, 8)) end,
    [11] = function(c) return "round " .. whole(c:add(m.round, 8)) end,
    [12] = function(c) return "after entry " .. c:position() end,
    [13] = function(c)
        local index = c:position()
        local count = c:add(m.entries, 2):uint()
        for _ = 1, count do c:entry() end
        return count .. (count == 1 and " entry" or " entries") .. ", decided is " .. index
    end,
    [14] = function(c)
        local index = c:position()
        local is_whole, is_blank = c:add(m.whole, 1):uint() == 1, c:add(m.blank, 1):uint() == 1
        for _ = 1, c:take(1):uint() do
            c:add(m.heard, 4)
            c:take(8)
        end
        c:add(m.left_in_order, 1)
        c:add(m.settings, 52)
        return "at entry " .. index .. (is_whole and "" or ", not whole") .. (is_blank and ", blank" or "")
    end,
    [15] = function(c)
        local id = c:add(m.welcomed, 4):uint()
        local index = c:position()
        c:take(16)
        c:add(m.serves, 8)
        c:add(m.attempt, 4)
        local is_transfer = c:add(m.transfer, 1):uint() == 1
        c:add(m.begins_empty, 1)
        -- The secret behind connection ids is not shown.
        c:take(32)
        c:add(m.shards, 4)
        return string.format("as %d, entry %s%s", id, index, is_transfer and ", by transfer" or "")
    end,
    [16] = function(c) return REFUSALS[c:add(m.refusal, 1):uint()] or "?" end,
    [17] = function(c) return tostring(c:add(m.number, 4):uint()) end,
    [18] = function(c)
        local number, index = c:add(m.number, 4):uint(), whole(c:add(m.through, 8))
        local count = c:take(4):uint()
        if count > 0 then c:add(m.bytes, count) end
        return string.format("%d as of entry %s, %d bytes", number, index, count)
    end,
    [19] = function(c)
        local index = c:position()
        c:add(m.digest, 8)
        return "at entry " .. index
    end,
    [20] = function(c)
        c:add(m.floor, 8)
        c:add(m.settled, 8)
        local count = c:add(m.requests, 2):uint()
        for _ = 1, count do forwarded(c) end
        return counted(count, "request")
    end,
    [21] = function(c)
        local count = c:add(m.requests, 2):uint()
        for _ = 1, count do answered(c) end
        return counted(count, "request")
    end,
    [24] = function(c)
        for _, text in ipairs({ m.program, m.host, m.clients, m.console, m.problem }) do
            local count = c:take(1):uint()
            if count > 0 then c:add(text, count) end
        end
        -- Durability and the disk; behind the rate, figures of answers, commits, writes and round trips, then files,
        -- buffers and losses.
        c:take(2)
        c:add(m.rate, 4)
        c:take(32 + 16 + 8)
        c:add(m.wall, 8)
        c:take(8)
        for _ = 1, c:take(1):uint() do
            c:add(m.echo, 8)
            c:take(8 + 4)
        end
        local up, down = {}, {}
        for _ = 1, c:take(1):uint() do
            local id = c:add(m.hears, 4):uint()
            c:add(m.silence, 2)
            table.insert(c:add(m.is_up, 1):uint() == 1 and up or down, id)
        end
        return "hears " .. (#up > 0 and table.concat(up, ", ") or "nobody")
            .. (#down > 0 and "; not " .. table.concat(down, ", ") or "")
    end,
}

-- Returns the message in a few words.
local function message(tvb, root)
    local tree = root:add(skm, tvb())
    if tvb:len() < 30 or tvb(0, 3):string() ~= "SKM" then
        tree:add_proto_expert_info(damaged)
        return "no message"
    end
    tree:add(m.version, tvb(3, 1))
    if tvb(3, 1):uint() ~= 3 then return "a message of another version" end
    tree:add(m.sender, tvb(4, 4))
    tree:add(m.incarnation, tvb(8, 8))
    local c = setmetatable({ tvb = tvb, tree = tree, at = 17 }, Cursor)
    local destination = "all"
    if tvb(16, 1):uint() == 1 then
        destination = tostring(c:add(m.destination, 4):uint())
        c:add(m.life, 8)
    end
    local epoch = c:take(12)
    local epoch_text = whole(epoch(0, 8)) .. "." .. epoch(8, 4):uint()
    tree:add(m.epoch, epoch, epoch_text)
    local kind = c:add(m.kind, 1):uint()
    local name = KINDS[kind] or "kind " .. kind
    tree:add(m.name, tvb(c.at - 1, 1), name)
    local details = ""
    if BODIES[kind] then
        local is_read, words = pcall(BODIES[kind], c)
        if is_read then details = " " .. words else tree:add_proto_expert_info(damaged) end
    end
    if c.at < tvb:len() then tree:add(m.rest, tvb(c.at)) end
    local text = string.format("%d to %s: %s [%s]%s", tvb(4, 4):uint(), destination, name, epoch_text, details)
    tree:append_text(": " .. text)
    return text
end

function skm.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "Swarmkeeper"
    pinfo.cols.info = message(tvb, root)
    return tvb:len()
end

----------------------------------------------------------------------------------------------------------------------
-- Frames of the multicast bus

local skb = Proto("skb", "Swarmkeeper frame of the bus")
skb.prefs.port = Pref.uint("Port of the bus", 6970, "UDP port of the multicast bus")
local FRAMES = { [1] = "messages", [2] = "part", [3] = "greeting", [4] = "wanted", [5] = "mark" }
local f = {}
do
    local field, done = fields(skb, "skb")
    f.version = field("uint8", "version", "Version", base.DEC)
    f.kind = field("uint8", "kind", "Kind", base.DEC, FRAMES)
    f.cluster = field("uint32", "cluster", "Tag of the cluster's name", base.HEX)
    f.session = field("uint64", "session", "Session of the sender", base.HEX)
    f.sequence = field("uint64", "sequence", "Number of the frame", base.DEC)
    f.destination = field("uint64", "destination", "Incarnation that it is for (0: all)", base.HEX)
    f.message = field("uint64", "part.message", "Number of the long message", base.DEC)
    f.part = field("uint32", "part.index", "Part, from 0", base.DEC)
    f.parts = field("uint32", "part.count", "Of parts", base.DEC)
    f.oldest = field("uint64", "oldest", "Oldest frame that can be repeated", base.DEC)
    f.known = field("uint64", "greeting.session", "Hears session", base.HEX)
    f.proven = field("bool", "greeting.proven", "Has proved to live")
    f.wanted = field("uint64", "wanted.session", "Wants frames of session", base.HEX)
    f.first = field("uint64", "wanted.first", "From number", base.DEC)
    f.last = field("uint64", "wanted.last", "To number", base.DEC)
    f.mac = field("bytes", "mac", "MAC (zeros in a simulated run)")
    done()
end

-- Parts of long messages by session, message and place; and the whole message, by the frame that completed it.
local parts, wholes = {}, {}
function skb.init() parts, wholes = {}, {} end

local function part(body, pinfo, tree, root, session)
    if body:len() <= 24 then return "a part that is too short" end
    tree:add(f.destination, body(0, 8))
    tree:add(f.message, body(8, 8))
    tree:add(f.part, body(16, 4))
    tree:add(f.parts, body(20, 4))
    local index, count = body(16, 4):uint(), body(20, 4):uint()
    if not pinfo.visited and count <= 65536 then
        local key = session .. ":" .. whole(body(8, 8))
        local known = parts[key] or { left = count }
        parts[key] = known
        if not known[index] then
            known[index] = body(24):bytes()
            known.left = known.left - 1
        end
        if known.left == 0 then
            local all = ByteArray.new()
            for place = 0, count - 1 do all:append(known[place]) end
            wholes[pinfo.number] = all
            parts[key] = nil
        end
    end
    local text = string.format("part %d of %d", index + 1, count)
    if wholes[pinfo.number] then
        text = text .. "; " .. message(wholes[pinfo.number]:tvb("Long message"), root)
    end
    return text
end

local function messages(body, tree, root)
    local texts, at_byte = {}, 0
    while body:len() - at_byte >= 12 do
        local count = body(at_byte + 8, 4):uint()
        if body:len() - at_byte - 12 < count then break end
        tree:add(f.destination, body(at_byte, 8))
        if count > 0 then texts[#texts + 1] = message(body(at_byte + 12, count):tvb(), root) end
        at_byte = at_byte + 12 + count
    end
    return table.concat(texts, " | ")
end

function skb.dissector(tvb, pinfo, root)
    local size = tvb:len()
    if size < 41 or tvb(0, 3):string() ~= "SKB" then return 0 end
    local tree = root:add(skb, tvb())
    pinfo.cols.protocol = "Swarmkeeper"
    tree:add(f.version, tvb(3, 1))
    if tvb(3, 1):uint() ~= 1 then
        pinfo.cols.info = "a frame of another version"
        return size
    end
    local kind, session = tvb(4, 1):uint(), hex(tvb(9, 8))
    tree:add(f.kind, tvb(4, 1))
    tree:add(f.cluster, tvb(5, 4))
    tree:add(f.session, tvb(9, 8))
    tree:add(f.sequence, tvb(17, 8))
    tree:add(f.mac, tvb(size - 16, 16))
    local text = FRAMES[kind] or "kind " .. kind
    local body = size > 41 and tvb(25, size - 41) or nil
    if kind == 1 and body then
        text = messages(body, tree, root)
    elseif kind == 2 and body then
        text = part(body, pinfo, tree, root, session)
    elseif kind == 3 and body and body:len() >= 10 then
        tree:add(f.oldest, body(0, 8))
        local count = math.min(body(8, 2):uint(), math.floor((body:len() - 10) / 9))
        for place = 0, count - 1 do
            tree:add(f.known, body(10 + 9 * place, 8)):add(f.proven, body(18 + 9 * place, 1))
        end
        text = "greeting: hears " .. counted(count, "session")
    elseif kind == 4 and body and body:len() >= 10 then
        tree:add(f.wanted, body(0, 8))
        local count = math.min(body(8, 2):uint(), math.floor((body:len() - 10) / 16))
        for place = 0, count - 1 do
            tree:add(f.first, body(10 + 16 * place, 8))
            tree:add(f.last, body(18 + 16 * place, 8))
        end
        text = "wants " .. counted(count, "gap") .. " of session " .. hex(body(0, 8))
    elseif kind == 5 and body and body:len() >= 8 then
        tree:add(f.oldest, body(0, 8))
        text = "mark before frame " .. whole(tvb(17, 8))
    end
    pinfo.cols.info = text
    tree:append_text(", " .. (FRAMES[kind] or "?"))
    return size
end

skb:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() < 41 or tvb(0, 3):string() ~= "SKB" then return false end
    return skb.dissector(tvb, pinfo, root) > 0
end)

----------------------------------------------------------------------------------------------------------------------
-- Ports

local udp = DissectorTable.get("udp.port")
local ports = {}
local function listen()
    for _, known in ipairs(ports) do udp:remove(known[1], known[2]) end
    ports = { { bep15.prefs.port, bep15 }, { skb.prefs.port, skb } }
    for _, port in ipairs(ports) do udp:add(port[1], port[2]) end
end
bep15.prefs_changed = listen
skb.prefs_changed = listen
listen()

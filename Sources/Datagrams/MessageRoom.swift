// What `recvmmsg` and `sendmmsg` want to be handed for many datagrams.

import Glibc
import Primitives

/// What `recvmmsg` and `sendmmsg` want to be handed for many datagrams: allocated once, used for ever.
///
/// Each message has a header that points to one vector (where its bytes are), one name (the other's address) and
/// one control block (which of our addresses). Only the vectors, and a few lengths, change from call to call.
struct MessageRoom: ~Copyable {
    /// `sockaddr_in6` takes 28 bytes, `sockaddr_in` 16.
    static let nameStride = 32
    /// CMSG_SPACE of `in6_pktinfo` is 40 bytes, of `in_pktinfo` 32; no other control message is asked for.
    static let controlStride = 64
    /// A control message's header; its data follow, aligned.
    static let controlHeaderByteCount = MemoryLayout<cmsghdr>.stride

    let capacity: Int
    let vectors: UnsafeMutablePointer<iovec>
    private let rawHeaders: UnsafeMutableRawPointer
    private let names: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer

    /// - Parameter capacity: messages a system call, 1…1,024 (the kernel's UIO_MAXIOV).
    init(capacity: Int) {
        precondition((1...1024).contains(capacity), "a system call takes 1 to 1,024 datagrams")
        self.capacity = capacity
        rawHeaders = .allocate(
            byteCount: capacity * MemoryLayout<mmsghdr>.stride, alignment: MemoryLayout<mmsghdr>.alignment)
        vectors = .allocate(capacity: capacity)
        names = .allocate(byteCount: capacity * Self.nameStride, alignment: 16)
        controls = .allocate(byteCount: capacity * Self.controlStride, alignment: 16)
        names.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * Self.nameStride)
        controls.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * Self.controlStride)
        vectors.initialize(repeating: iovec(), count: capacity)
        let headers = rawHeaders.initializeMemory(as: mmsghdr.self, repeating: mmsghdr(), count: capacity)
        for index in 0..<capacity {
            headers[index].msg_hdr.msg_name = name(index)
            headers[index].msg_hdr.msg_iov = vectors + index
            headers[index].msg_hdr.msg_iovlen = 1
        }
    }

    deinit {
        rawHeaders.deallocate()
        vectors.deallocate()
        names.deallocate()
        controls.deallocate()
    }

    var headers: UnsafeMutablePointer<mmsghdr> { rawHeaders.assumingMemoryBound(to: mmsghdr.self) }

    func name(_ index: Int) -> UnsafeMutableRawPointer { names + index * Self.nameStride }

    func control(_ index: Int) -> UnsafeMutableRawPointer { controls + index * Self.controlStride }

    /// Makes a header ready to receive again: the kernel wrote over its lengths and flags.
    func reset(_ index: Int, wantsControl: Bool) {
        headers[index].msg_hdr.msg_namelen = socklen_t(Self.nameStride)
        headers[index].msg_hdr.msg_control = wantsControl ? control(index) : nil
        headers[index].msg_hdr.msg_controllen = wantsControl ? Self.controlStride : 0
        headers[index].msg_hdr.msg_flags = 0
    }

    /// Where a received message came from.
    func remote(_ index: Int) -> SocketAddress {
        SocketAddress(socketName: name(index))
    }

    /// Which of our addresses a received message was sent to, from its packet information.
    ///
    /// A group's or a network's address is not ours: then it is the one to answer from, where the kernel says.
    ///
    /// - Parameters:
    ///   - index: which message of the room.
    ///   - port: on which the socket is bound.
    /// - Returns: `.unspecified` where the kernel did not say.
    func asked(_ index: Int, port: UInt16) -> SocketAddress {
        let header = headers[index].msg_hdr
        guard header.msg_controllen >= Self.controlHeaderByteCount, header.msg_flags & CInt(MSG_CTRUNC) == 0
        else { return .unspecified }
        let control = control(index)
        let message = control.load(as: cmsghdr.self)
        let data = control + Self.controlHeaderByteCount
        if message.cmsg_level == IPPROTO_IP, message.cmsg_type == IP_PKTINFO {
            let information = data.load(as: in_pktinfo.self)
            return SocketAddress(ipv4: UInt32(bigEndian: information.ipi_spec_dst.s_addr), port: port)
        }
        if message.cmsg_level == IPPROTO_IPV6, message.cmsg_type == IPV6_PKTINFO {
            var address = SocketAddress(ipv6: data, port: port)
            guard !address.isIPv6Group else { return .unspecified }
            if address.isLinkLocal { address.scope = data.load(as: in6_pktinfo.self).ipi6_ifindex }
            return address
        }
        return .unspecified
    }

    /// Makes a message ready to be sent.
    ///
    /// - Parameters:
    ///   - index: which message of the room.
    ///   - remote: of the socket's family.
    ///   - source: the address of ours that it shall leave from; the kernel's choice where `.unspecified`.
    func address(_ index: Int, to remote: SocketAddress, from source: SocketAddress) {
        headers[index].msg_hdr.msg_namelen = remote.write(socketName: name(index), isIPv4: remote.isIPv4)
        guard !source.isUnspecified, source.isIPv4 == remote.isIPv4 else {
            headers[index].msg_hdr.msg_control = nil
            headers[index].msg_hdr.msg_controllen = 0
            return
        }
        let control = control(index)
        let data = control + Self.controlHeaderByteCount
        let (level, type, size): (CInt, CInt, Int)
        if remote.isIPv4 {
            (level, type, size) = (CInt(IPPROTO_IP), CInt(IP_PKTINFO), MemoryLayout<in_pktinfo>.size)
            var information = in_pktinfo()
            information.ipi_spec_dst.s_addr = source.ipv4.bigEndian
            data.storeBytes(of: information, as: in_pktinfo.self)
        } else {
            (level, type, size) = (CInt(IPPROTO_IPV6), CInt(IPV6_PKTINFO), MemoryLayout<in6_pktinfo>.size)
            data.storeBytes(of: source.high.bigEndian, as: UInt64.self)
            data.storeBytes(of: source.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            data.storeBytes(of: source.scope, toByteOffset: 16, as: UInt32.self)
        }
        var message = cmsghdr()
        message.cmsg_len = Self.controlHeaderByteCount + size
        message.cmsg_level = level
        message.cmsg_type = type
        control.storeBytes(of: message, as: cmsghdr.self)
        headers[index].msg_hdr.msg_control = control
        // CMSG_SPACE: the data are padded to the alignment of a header.
        headers[index].msg_hdr.msg_controllen = Self.controlHeaderByteCount + (size + 7) & ~7
    }
}

extension SocketAddress {
    /// Reads a `sockaddr_in` or `sockaddr_in6`.
    init(socketName name: UnsafeRawPointer) {
        let family = name.load(as: sa_family_t.self)
        let port = UInt16(bigEndian: name.load(fromByteOffset: 2, as: UInt16.self))
        if CInt(family) == AF_INET {
            self.init(ipv4: UInt32(bigEndian: name.load(fromByteOffset: 4, as: UInt32.self)), port: port)
        } else {
            self.init(ipv6: name + 8, port: port)
            if isLinkLocal { scope = name.load(fromByteOffset: 24, as: UInt32.self) }
        }
    }

    /// Reads sixteen address bytes.
    init(ipv6 bytes: UnsafeRawPointer, port: UInt16) {
        self.init(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)), port: port)
    }

    /// Writes a `sockaddr_in` or `sockaddr_in6`.
    ///
    /// - Parameters:
    ///   - name: room for 28 bytes, aligned to 8.
    ///   - isIPv4: which of the two.
    /// - Returns: how many bytes it has.
    func write(socketName name: UnsafeMutableRawPointer, isIPv4: Bool) -> socklen_t {
        if isIPv4 {
            name.storeBytes(of: sa_family_t(AF_INET), as: sa_family_t.self)
            name.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
            name.storeBytes(of: ipv4.bigEndian, toByteOffset: 4, as: UInt32.self)
            name.storeBytes(of: 0, toByteOffset: 8, as: UInt64.self)
            return socklen_t(MemoryLayout<sockaddr_in>.size)
        }
        name.storeBytes(of: sa_family_t(AF_INET6), as: sa_family_t.self)
        name.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
        name.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
        name.storeBytes(of: high.bigEndian, toByteOffset: 8, as: UInt64.self)
        name.storeBytes(of: low.bigEndian, toByteOffset: 16, as: UInt64.self)
        name.storeBytes(of: scope, toByteOffset: 24, as: UInt32.self)
        return socklen_t(MemoryLayout<sockaddr_in6>.size)
    }
}

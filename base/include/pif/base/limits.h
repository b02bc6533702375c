// Limits that every part agrees on; docs/PROTOCOL.md and docs/FORMAT.md say why each is what it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pif {

inline constexpr std::uint32_t kRecordLengthMax = 16u << 20;   // bytes of one record
inline constexpr std::uint32_t kByteRecordLength = 64u << 10;  // record length of a byte file (`put` without a format)
inline constexpr std::size_t kNameBytesMax = 255;              // one component of a path
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::uint64_t kFileBytesMax = std::uint64_t{1}
                                               << 62;  // of one file: positions and sums of them fit 63 bits
inline constexpr std::uint64_t kGapBytesMax = std::uint64_t{64}
                                              << 30;  // that a write past the end of a file fills with zeros
inline constexpr std::uint32_t kWidthMax = 4096;      // LFSs of one file
inline constexpr std::size_t kBulkBytes = 1u << 20;   // payload of one bulk message (one record may exceed it)
inline constexpr std::size_t kBodyBytesMax = kRecordLengthMax + (1u << 16);  // largest raw frame anybody accepts
inline constexpr std::size_t kHeaderBytesMax = 1u << 20;                     // largest protobuf frame anybody accepts
inline constexpr std::size_t kUnixPacketBytesMax = 128u << 10;               // largest packet over a Unix socket
inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kFormatVersion = 2;            // of pif.toml, an LFS root and the server's directory
inline constexpr std::uint32_t kFormatBefore = 1;             // taken over once, by the first `pif up`
inline constexpr std::uint32_t kRootFormat = 4;               // of an LFS root; one of 2 or 3 is raised at its start
inline constexpr std::size_t kAttributeBytesMax = 64u << 10;  // all attributes of one file together

}  // namespace pif

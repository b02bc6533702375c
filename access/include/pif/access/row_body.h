// Rows as the body of a message (docs/PROTOCOL.md "LFS operations").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pif/net/buffer.h"

namespace pif::access {

// Rows that are put together for a message. The body is: lengths, 32 bits each, then the rows.
struct RowBody {
  std::vector<std::uint32_t> lengths;  // of the rows; none with fixed records
  std::vector<std::byte> data;         // the rows, packed

  std::size_t size() const { return lengths.size() * sizeof(std::uint32_t) + data.size(); }
  // size() bytes.
  net::Buffer to_buffer() const;
};

}  // namespace pif::access

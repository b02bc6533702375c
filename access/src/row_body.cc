#include "pif/access/row_body.h"

#include <cstring>

namespace pif::access {

net::Buffer RowBody::to_buffer() const {
  net::Buffer body(size());
  const std::size_t lengths_bytes = size() - data.size();
  if (lengths_bytes > 0) std::memcpy(body.data(), lengths.data(), lengths_bytes);
  if (!data.empty()) std::memcpy(body.data() + lengths_bytes, data.data(), data.size());
  return body;
}

}  // namespace pif::access

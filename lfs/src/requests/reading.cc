#include "requests/reading.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kEndsAtOnce = 8192;       // of the index, while it is found out how many rows fit a body
constexpr std::size_t kGatherBytes = 256u << 10;  // read at once when short rows at a distance are picked out
constexpr std::uint64_t kScanBytesMax =
    4u << 20;  // read for one request, whatever of it is asked for: others wait meanwhile
constexpr std::uint64_t kRowsMax = kBulkBytes / sizeof(std::uint32_t);

Status past_end(const Component& c, std::string_view what, std::uint64_t at, std::uint64_t end) {
  return fail(Code::kEndOfFile,
              fmt::format("{} {} of file {} is asked for, this LFS has {}", what, at, name_of(c.file), end));
}

Status too_long(std::uint64_t bytes, std::size_t bytes_max) {
  return fail(Code::kTooLarge, fmt::format("a record of {} bytes does not fit a packet of {} here: ask through ZeroMQ",
                                           bytes, bytes_max));
}

// Whether rows at this distance are picked out of large reads, not read one by one.
bool are_close(std::uint64_t stride, std::uint64_t length) { return stride * length < kGatherBytes / 4; }

// What picking one row of many at this distance reads.
std::uint64_t scanned(std::uint64_t stride, std::uint64_t length, std::uint64_t chunk_bytes) {
  return are_close(stride, length) ? stride * length : length + chunk_bytes;
}

// Picks rows that lie `stride` apart out of large reads.
Status gather(const component::Reader& reader, std::uint64_t first, std::uint64_t count, std::uint64_t stride,
              std::uint64_t length, std::span<std::byte> out) {
  const std::uint64_t end_of_data = reader.tail().bytes;
  if (!are_close(stride, length)) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = (first + i * stride) * length;
      PIF_TRY(reader.read_bytes(at, out.subspan(i * length, std::min(length, end_of_data - at))));
    }
    return {};
  }
  std::vector<std::byte> window;
  const std::uint64_t rows_at_once = kGatherBytes / (stride * length);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t rows = std::min(rows_at_once, count - done);
    const std::uint64_t begin = (first + done * stride) * length;
    const std::uint64_t end = std::min(begin + ((rows - 1) * stride + 1) * length, end_of_data);
    window.resize(end - begin);
    PIF_TRY(reader.read_bytes(begin, window));
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t at = i * stride * length;
      std::memcpy(out.data() + (done + i) * length, window.data() + at, std::min(length, window.size() - at));
    }
    done += rows;
  }
  return {};
}

}  // namespace

Reading::Reading(LfsContext& context) : context_(context) {
  context.operations.bind<&Reading::read>(*this);
  context.operations.bind<&Reading::read_bytes>(*this);
  context.operations.bind<&Reading::offsets>(*this);
  context.operations.bind<&Reading::length>(*this);
}

Result<ComponentPtr> Reading::readable(const Request& request, FileId file) {
  PIF_TRY_VALUE(auto component, context_.published(request, file));
  PIF_TRY(context_.components.open_files(*component, component::Access::kRead));
  return component;
}

Result<net::Packet> Reading::read(const Request& request, const proto::Read& asked) {
  PIF_TRY_VALUE(const auto component, readable(request, FileId(asked.file())));
  Span span{asked.first(), asked.count(), std::max<std::uint64_t>(asked.stride(), 1)};
  const std::uint64_t rows = component->reader->tail().rows;
  if (span.count == 0) return fail(Code::kInvalid, "a read of no rows");
  if (span.first >= rows) return fail(past_end(*component, "row", span.first, rows).error());
  span.count = std::min(span.count, (rows - 1 - span.first) / span.stride + 1);
  const auto bytes_max = LfsContext::body_bytes_max(request);
  auto body = component->shape.format.is_fixed() ? read_fixed(*component, span, bytes_max)
              : span.stride == 1                 ? read_variable(*component, span, bytes_max)
                                                 : read_variable_strided(*component, span, bytes_max);
  if (!body) {
    if (body.error().code == Code::kCorrupt) spdlog::error("{}", body.error().text);
    return fail(std::move(body.error()));
  }
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_read_reply()->set_rows(span.count);
  reply.body = std::move(*body);
  return reply;
}

Result<net::Buffer> Reading::read_fixed(const Component& component, Span& span, std::size_t bytes_max) {
  const std::uint64_t length = component.shape.format.record_length;
  if (length > bytes_max && bytes_max < kBulkBytes) return fail(too_long(length, bytes_max).error());
  span.count = std::min(span.count, std::max<std::uint64_t>(bytes_max / length, 1));
  if (span.stride > 1) {
    const std::uint64_t each = scanned(span.stride, length, component.shape.chunk_bytes);
    span.count = std::min(span.count, std::max<std::uint64_t>(kScanBytesMax / each, 1));
  }
  const std::uint64_t last = span.first + (span.count - 1) * span.stride;
  const std::uint64_t last_bytes = std::min(length, component.reader->tail().bytes - last * length);
  net::Buffer body((span.count - 1) * length + last_bytes);
  if (span.stride == 1) {
    PIF_TRY(component.reader->read_bytes(span.first * length, body.span()));
  } else {
    PIF_TRY(gather(*component.reader, span.first, span.count, span.stride, length, body.span()));
  }
  return body;
}

Result<net::Buffer> Reading::read_variable(const Component& component, Span& span, std::size_t bytes_max) {
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint64_t> ends;
  std::uint64_t begin = 0;
  std::uint64_t total = 0;
  const std::uint64_t rows_max = std::min(span.count, kRowsMax);
  for (bool full = false; !full && lengths.size() < rows_max;) {
    const std::uint64_t count = std::min(kEndsAtOnce, rows_max - lengths.size());
    ends.resize(count + 1);
    PIF_TRY(component.reader->read_ends(span.first + lengths.size(), count, ends));
    if (lengths.empty()) begin = ends[0];
    for (std::uint64_t i = 0; i < count && !full; ++i) {
      const std::uint64_t row_bytes = ends[i + 1] - ends[i];
      full = !lengths.empty() && total + row_bytes + (lengths.size() + 1) * sizeof(std::uint32_t) > bytes_max;
      if (full) break;
      lengths.push_back(static_cast<std::uint32_t>(row_bytes));
      total += row_bytes;
    }
  }
  const std::size_t head = lengths.size() * sizeof(std::uint32_t);
  if (head + total > bytes_max && bytes_max < kBulkBytes) return fail(too_long(total, bytes_max).error());
  span.count = lengths.size();
  net::Buffer body(head + total);
  std::memcpy(body.data(), lengths.data(), head);
  PIF_TRY(component.reader->read_bytes(begin, body.span().subspan(head)));
  return body;
}

Result<net::Buffer> Reading::read_variable_strided(const Component& component, Span& span, std::size_t bytes_max) {
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
  const std::uint64_t chunk_bytes = component.shape.chunk_bytes;
  std::uint64_t scanned_bytes = 0, next_chunk = 0;  // behind the last row
  for (std::uint64_t i = 0; i < std::min(span.count, kRowsMax) && scanned_bytes < kScanBytesMax; ++i) {
    std::uint64_t ends[2];
    PIF_TRY(component.reader->read_ends(span.first + i * span.stride, 1, ends));
    const std::uint64_t row_bytes = ends[1] - ends[0];
    const bool fits = data.size() + row_bytes + (lengths.size() + 1) * sizeof(std::uint32_t) <= bytes_max;
    if (!fits && !lengths.empty()) break;
    if (!fits && bytes_max < kBulkBytes) return fail(too_long(row_bytes, bytes_max).error());
    lengths.push_back(static_cast<std::uint32_t>(row_bytes));
    data.resize(data.size() + row_bytes);
    if (row_bytes > 0 && ends[1] > next_chunk) {
      scanned_bytes += row_bytes + chunk_bytes;
      next_chunk = (ends[1] + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    }
    PIF_TRY(component.reader->read_bytes(ends[0], std::span(data).last(row_bytes)));
  }
  span.count = lengths.size();
  const std::size_t head = lengths.size() * sizeof(std::uint32_t);
  net::Buffer body(head + data.size());
  std::memcpy(body.data(), lengths.data(), head);
  if (!data.empty()) std::memcpy(body.data() + head, data.data(), data.size());
  return body;
}

Result<net::Packet> Reading::read_bytes(const Request& request, const proto::ReadBytes& asked) {
  PIF_TRY_VALUE(const auto component, readable(request, FileId(asked.file())));
  const std::uint64_t end = component->reader->tail().bytes;
  if (asked.bytes() == 0) return fail(Code::kInvalid, "a read of no bytes");
  if (asked.offset() >= end) return fail(past_end(*component, "byte", asked.offset(), end).error());
  const auto bytes =
      std::min({asked.bytes(), end - asked.offset(), std::uint64_t{LfsContext::body_bytes_max(request)}});
  net::Packet reply = Replies::reply(request);
  reply.body = net::Buffer(bytes);
  PIF_TRY(component->reader->read_bytes(asked.offset(), reply.body.span()));
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> Reading::offsets(const Request& request, const proto::Offsets& asked) {
  PIF_TRY_VALUE(const auto component, readable(request, FileId(asked.file())));
  if (component->shape.format.is_fixed())
    return fail(Code::kInvalid, "fixed-length records have no offsets to ask for");
  const auto count = static_cast<std::size_t>(asked.rows_size());
  if (count * sizeof(std::uint64_t) > LfsContext::body_bytes_max(request))
    return fail(Code::kTooLarge, fmt::format("offsets of {} rows at once", count));
  const auto tail = component->reader->tail();
  std::vector<std::uint64_t> offsets;
  for (const auto row : asked.rows()) {
    if (row > tail.rows) return fail(past_end(*component, "row", row, tail.rows).error());
    std::uint64_t offset = row == tail.rows ? tail.bytes : 0;
    if (row > 0 && row < tail.rows) PIF_TRY(component->reader->read_ends(row, 0, std::span(&offset, 1)));
    offsets.push_back(offset);
  }
  net::Packet reply = Replies::reply(request);
  reply.body = net::Buffer::copy_of(std::as_bytes(std::span(offsets)));
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> Reading::length(const Request& request, const proto::Length& asked) {
  auto component = context_.published(request, FileId(asked.file()));
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_length_reply();
  // A file that never had a record has no component: it is empty.
  if (!component && component.error().code == Code::kNotFound) {
    *out->mutable_file_length() = wire::proto_of(FileLength());
    return reply;
  }
  if (!component) return fail(std::move(component.error()));
  const auto& state = (*component)->state;
  if (state.shape().index() != 0)
    return fail(Code::kInvalid,
                fmt::format("the length is known at LFS 0 of the file, this is LFS {}", state.shape().index()));
  *out->mutable_file_length() = state.published();
  out->set_generation(state.grants());
  return reply;
}

void Reading::attach(const Request& request) {
  auto component = context_.published(request, FileId(request.envelope().attach().file()));
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if (!context_.input_locks.is_worker(request.peer)) {
    return context_.replies.answer(context_.replies.defer(request), descriptors(**component));
  }
  context_.input_locks.add((*component)->file, request.peer);
  attaching_.push_back({context_.replies.defer(request), std::move(*component)});
}

void Reading::advance(const IsChanging& is_changing) {
  std::erase_if(attaching_, [&](const Attaching& one) {
    if (!context_.replies.is_waiting(one.token)) return true;
    if (one.component->removed) {
      context_.replies.answer(one.token, fail(Code::kStaleFile, "the file was deleted meanwhile"));
      return true;
    }
    if (is_changing(*one.component)) return false;
    context_.replies.answer(one.token, descriptors(*one.component));
    return true;
  });
}

Result<net::Packet> Reading::descriptors(Component& component) {
  net::Packet reply;
  *reply.envelope.mutable_attach_reply()->mutable_state() = component.state;
  if (component.access == component::Access::kRead || !component.access) {
    PIF_TRY(context_.components.open_files(component, component::Access::kRead));
    PIF_TRY_VALUE(reply.handles, component::share(component.files));
    return reply;
  }
  // Ours can write: others get descriptors that cannot.
  PIF_TRY_VALUE(auto files, component::open_files(context_.world.storage, context_.components.stem(component.file),
                                                  component.shape.format, component::Access::kRead));
  PIF_TRY_VALUE(reply.handles, component::share(files));
  return reply;
}

}  // namespace pif::lfs

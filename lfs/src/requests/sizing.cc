#include "requests/sizing.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr int kFilesMax = 1000;

Result<proto::StoredBytesReply> measure(component::Storage& storage, const std::vector<std::string>& stems) {
  proto::StoredBytesReply reply;
  for (const std::string& stem : stems) {
    PIF_TRY_VALUE(const component::StoredBytes bytes, component::stored_bytes(storage, stem));
    reply.add_rows(bytes.rows);
    reply.add_parity(bytes.parity);
  }
  PIF_ASSERT(reply.rows_size() == reply.parity_size(), reply.rows_size());
  return reply;
}

}  // namespace

Sizing::Sizing(LfsContext& context) : context_(context) { context_.operations.bind<&Sizing::stored_bytes>(*this); }

Result<net::Packet> Sizing::stored_bytes(const Request& request, const proto::StoredBytes& asked) {
  if (asked.files_size() > kFilesMax)
    return fail(Code::kTooLarge, fmt::format("{} files at once, not at most {}", asked.files_size(), kFilesMax));
  std::vector<std::string> stems;
  for (const std::uint64_t file : asked.files()) stems.push_back(context_.components.stem(FileId(file)));
  net::Packet reply = Replies::reply(request);
  PIF_TRY_VALUE(*reply.envelope.mutable_stored_bytes_reply(),
                context_.disk([&] { return measure(context_.world.storage, stems); }));
  return reply;
}

}  // namespace pif::lfs

// Parts that requests about names have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pif/client/session.h"

namespace pif::client {

[[nodiscard]] Result<Entry> entry_of(const proto::EntryInfo& info);
// Sets the owner of what a Create or a MakeFolder makes.
template <typename Request>
void set_owner(const std::optional<std::uint32_t>& owner, const std::optional<std::uint32_t>& group, Request& request) {
  if (owner) request.set_owner(*owner);
  if (group) request.set_group(*group);
}
proto::Striping proto_of(const Striping& striping);
// A message holds well-formed text only: what is not UTF-8 would never reach the server, which refuses it as well.
[[nodiscard]] Status sendable(const std::string& path);
// When the name of what is created is there: with its commit; at once, as that of an empty file; or the same, and what
// is created takes that file's place.
enum class WhenThere : std::uint8_t { kAtCommit, kAtOnce, kAtOnceAndCreated };
net::Packet create_packet(const std::string& path, const CreateOptions& options, WhenThere there);
[[nodiscard]] Result<ListPage> list_page(Session& session, proto::List list);
// Runs a request for one. shown: its path, for messages.
[[nodiscard]] Status remove_one(Session& session, proto::Remove request, const std::string& shown);
// Without the server's name: people know who keeps the names.
Error strip(Error error);

}  // namespace pif::client

// Entries of folders, and requests for them, as messages.
#include <fmt/format.h>

#include "names/names.h"
#include "pif/base/inheriting.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"
#include "pif/wire/convert.h"

namespace pif::client {

namespace {

Result<Striping> striping_of(const proto::Striping& said) {
  Striping striping;
  if (said.has_format()) {
    PIF_TRY_VALUE(striping.format, wire::format_of(said.format()));
  }
  striping.width = said.width();
  striping.nodes.assign(said.nodes().begin(), said.nodes().end());
  if (said.has_bevy()) striping.bevy = said.bevy();
  return striping;
}

// Create.inherits
std::uint32_t inherited(const CreateOptions& options) {
  const bool says_nodes = options.width != 0 || !options.nodes.empty() || !options.bevies.empty();
  const bool says_bevies = options.bevy != 0 || !options.bevies.empty();
  return (options.inherits_format ? kInheritsFormat : 0) |
         (options.inherits_layout && !says_nodes ? kInheritsNodes : 0) |
         (options.inherits_layout && !says_bevies ? kInheritsBevies : 0);
}

}  // namespace

proto::Striping proto_of(const Striping& striping) {
  proto::Striping out;
  if (striping.format) *out.mutable_format() = wire::proto_of(*striping.format);
  out.set_width(striping.width);
  out.mutable_nodes()->Assign(striping.nodes.begin(), striping.nodes.end());
  if (striping.bevy) out.set_bevy(*striping.bevy);
  return out;
}

namespace {

EntryKind kind_of(wire::OtherKind kind) {
  constexpr EntryKind kKinds[] = {EntryKind::kLink, EntryKind::kFifo, EntryKind::kSocket, EntryKind::kCharacterDevice,
                                  EntryKind::kBlockDevice};
  return kKinds[kind - wire::kOtherLink];
}

// Sets the kind of the entry, and what only entries of that kind have.
Status set_kind(const proto::EntryInfo& info, Entry& entry) {
  if (info.type() == proto::OTHER) {
    PIF_TRY_VALUE(const wire::OtherKind kind, wire::other_kind_of(info.other()));
    entry.kind = kind_of(kind);
    entry.target = info.other().target();
    entry.device = info.other().device();
    return {};
  }
  entry.kind = info.type() == proto::FOLDER ? EntryKind::kFolder : EntryKind::kFile;
  if (entry.kind != EntryKind::kFile) return {};
  PIF_TRY_VALUE(entry.format, wire::format_of(info.format()));
  return {};
}

}  // namespace

Result<Entry> entry_of(const proto::EntryInfo& info) {
  Entry entry;
  entry.name = info.name();
  PIF_TRY(set_kind(info, entry));
  entry.id = info.id();
  entry.inode = info.inode() != 0 ? info.inode() : info.id();
  entry.owner = info.attributes().owner();
  entry.group = info.attributes().group();
  entry.mode = info.attributes().mode();
  entry.modified_ns = info.attributes().modified();
  entry.changed_ns = info.attributes().changed();
  entry.nodes.assign(info.layout().nodes().begin(), info.layout().nodes().end());
  entry.bevies.assign(info.layout().bevies().begin(), info.layout().bevies().end());
  entry.is_protected = info.layout().bevies_size() > 0 && !wire::is_older(info.layout());
  PIF_TRY_VALUE(entry.striping, striping_of(info.striping()));
  entry.is_placed = info.placed();
  entry.file_length = wire::file_length_of(info.file_length());
  for (const auto& [name, value] : info.attributes().named()) entry.attributes.emplace(name, value);
  for (const proto::FileMark& mark : info.marks())
    entry.marks.push_back({mark.node(), static_cast<FileMark::Kind>(mark.kind()), mark.since()});
  return entry;
}

Status sendable(const std::string& path) {
  // It fits into a message; the server sees to the rest.
  if (path.size() <= kPathBytesMax && is_utf8(path)) return {};
  auto checked = check_path(path);  // says which path
  return fail(checked ? Error{Code::kInvalid, "the path is not UTF-8", {}} : std::move(checked.error()));
}

net::Packet create_packet(const std::string& path, const CreateOptions& options, WhenThere there) {
  net::Packet packet;
  proto::Create& create = *packet.envelope.mutable_create();
  create.set_path(path);
  *create.mutable_format() = wire::proto_of(options.format);
  create.set_width(options.width);
  create.mutable_nodes()->Assign(options.nodes.begin(), options.nodes.end());
  create.mutable_bevies()->Assign(options.bevies.begin(), options.bevies.end());
  create.set_bevy(options.bevy);
  create.set_inherits(inherited(options));
  create.set_same_host_ok(options.same_host_ok);
  create.set_mode(options.mode);
  set_owner(options.owner, options.group, create);
  for (const auto& [name, value] : options.attributes) (*create.mutable_named())[name] = value;
  create.set_exclusive(options.exclusive);
  create.set_empty(there == WhenThere::kAtOnce);
  create.set_now(there == WhenThere::kAtOnceAndCreated);
  create.set_placed(options.placed);
  return packet;
}

Error strip(Error error) {
  if (error.node == "server") error.node.clear();
  return error;
}

}  // namespace pif::client

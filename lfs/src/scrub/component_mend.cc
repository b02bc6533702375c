#include "scrub/component_mend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
ComponentMend::ComponentMend(Keeping& keeping, Managing& managing, Reporting& reporting, RateLimit& rate)
    : keeping_(keeping), context_(keeping.context), managing_(managing), server_(reporting), rate_(rate) {}

Result<bool> ComponentMend::mend(FileId file) {
  PIF_TRY_VALUE(const One listed, list(file));
  PIF_TRY(check_all_there(listed));
  const auto known = context_.components.find(file);
  if (!known && known.error().code != Code::kCorrupt) return fail(known.error());
  PIF_TRY_VALUE(const bool is_made, restore(listed, FileRestore::Purpose::kMend));
  if (is_made || context_.components.find(file)) return is_made;
  return fail(Code::kStaleFile, "nothing of it belongs here");
}

// Which file it is, as the PIF Server knows it now.
Result<ComponentMend::One> ComponentMend::list(FileId file) {
  PIF_ASSERT(file.value != 0);
  net::Packet packet;
  proto::ListLost& asked = *packet.envelope.mutable_list_lost();
  asked.set_node(context_.config.node);
  asked.set_after(file.value - 1);
  asked.set_limit(1);
  PIF_TRY_VALUE(const net::Packet reply, server_.ask(std::move(packet)));
  const auto& files = reply.envelope.list_lost_reply().files();
  if (files.empty() || files[0].file() != file.value)
    return fail(Code::kNotFound, "the PIF Server knows of no such file with parity");
  return files[0];
}

Result<bool> ComponentMend::make(const One& file, bool only_look) {
  const FileId id(file.file());
  if (context_.components.find(id)) return false;  // it came since
  if (context_.components.is_quarantined(id)) return fail(Code::kUnavailable, "what is here of it is in quarantine");
  if (!has_part(file) && (file.untouched() || !check_all_there(file))) return false;
  PIF_TRY(check_all_there(file));
  auto made = restore(file, only_look ? FileRestore::Purpose::kLook : FileRestore::Purpose::kMake);
  if (made || made.error().code == Code::kCancelled) return made;
  const auto listed = list(id);  // it may have been removed meanwhile
  if (!listed && listed.error().code == Code::kNotFound) return false;
  return made;
}

// As far as the directory knows how long it is.
bool ComponentMend::has_part(const One& file) const {
  const auto layout = layout_of(file.layout());
  const auto format = format_of(file.format());
  const auto& nodes = file.layout().nodes();
  const auto here = std::find(nodes.begin(), nodes.end(), context_.config.node);
  if (!layout || !layout->has_parity() || !format || here == nodes.end()) return false;
  return bytes_on(*layout, static_cast<LfsIndex>(here - nodes.begin()), *format, file_length_of(file.file_length())) >
         0;
}

// Else what only those have who are absent would be missed.
Status ComponentMend::check_all_there(const One& file) const {
  for (const auto node : file.layout().nodes())
    if (context_.view.state_of(node) != wire::kViewMember)
      return fail(Code::kUnavailable, fmt::format("node {}, which has a part of the file, is no member", node));
  if (file.lacking().empty() && !context_.lost_files.lacks(FileId(file.file()))) return {};
  return fail(Code::kUnavailable, "an LFS lacks its part of the file (pif rebuild)");
}

// In this view, so that nothing is published meanwhile that it does not hear of.
Result<bool> ComponentMend::restore(const One& file, FileRestore::Purpose purpose) {
  using Outcome = FileRestore::Outcome;
  const daemon::AtExit end([this] { context_.lost_files.end_mending(); });
  FileRestore restore(keeping_, managing_, rate_, file, {context_.view.index(), 0}, purpose);
  PIF_TRY_VALUE(const Outcome outcome, restore.run());
  return outcome == Outcome::kRestored;
}

}  // namespace pif::lfs

#include "scrub/component_mend.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {

ComponentMend::ComponentMend(Keeping& keeping, Managing& managing, Rebuild::Ask ask, RateLimit& rate)
    : keeping_(keeping), context_(keeping.context), managing_(managing), ask_(std::move(ask)), rate_(rate) {}

void ComponentMend::start(FileId file, Done done) {
  PIF_ASSERT(!is_busy() && file.value != 0, file.value);
  file_ = file;
  is_missing_ = false;
  done_ = std::move(done);
  list([this](const Result<One>& one) { listed(one); });
}

// Which file it is, as the PIF Server knows it now.
void ComponentMend::list(Listed listed) {
  net::Packet packet;
  proto::ListLost& asked = *packet.envelope.mutable_list_lost();
  asked.set_node(context_.config.node);
  asked.set_after(file_.value - 1);
  asked.set_limit(1);
  ask_(std::move(packet), [this, listed = std::move(listed)](const Result<net::Packet>& reply) {
    if (!reply) return listed(fail(reply.error()));
    const auto& files = reply->envelope.list_lost_reply().files();
    if (files.empty() || files[0].file() != file_.value)
      return listed(fail(Code::kNotFound, "the PIF Server knows of no such file with parity"));
    listed(files[0]);
  });
}

void ComponentMend::listed(const Result<One>& file) {
  if (!file) return end(Outcome::kFailed, file.error());
  if (auto ok = check_all_there(*file); !ok) return end(Outcome::kFailed, ok.error());
  const auto known = context_.components.find(file_);
  if (!known && known.error().code != Code::kCorrupt) return end(Outcome::kFailed, known.error());
  restore(*file, FileRestore::Purpose::kMend);
}

void ComponentMend::start_missing(const One& file, bool only_look, Done done) {
  PIF_ASSERT(!is_busy() && file.file() != 0, file.file());
  file_ = FileId(file.file());
  is_missing_ = true;
  done_ = std::move(done);
  if (context_.components.find(file_)) return end(Outcome::kNothing);  // it came since
  if (context_.components.is_quarantined(file_))
    return end(Outcome::kFailed, {Code::kUnavailable, "what is here of it is in quarantine", {}});
  if (file.untouched() && !has_part(file)) return end(Outcome::kNothing);
  const Status all_there = check_all_there(file);
  if (!all_there) return end(has_part(file) ? Outcome::kFailed : Outcome::kNothing, all_there.error());
  restore(file, only_look ? FileRestore::Purpose::kLook : FileRestore::Purpose::kMake);
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
  if (file.lacking().empty() && !context_.lost_files.lacks(file_)) return {};
  return fail(Code::kUnavailable, "an LFS lacks its part of the file (pif rebuild)");
}

// In this view, so that nothing is published meanwhile that it does not hear of.
void ComponentMend::restore(const One& file, FileRestore::Purpose purpose) {
  PIF_ASSERT(!restore_ && is_busy() && file.file() == file_.value, file.file(), file_.value);
  const FileRestore::Moment moment{context_.view.index(), 0};
  restore_ = std::make_shared<FileRestore>(keeping_, managing_, rate_, file, moment, purpose);
  restore_->start([this](FileRestore::Outcome outcome, const Error& error) { restored(outcome, error); });
}

void ComponentMend::restored(FileRestore::Outcome outcome, const Error& error) {
  PIF_ASSERT(is_busy(), file_.value);
  switch (outcome) {
    case FileRestore::Outcome::kRestored: return end(Outcome::kMended);
    case FileRestore::Outcome::kNothing:
      if (is_missing_ || context_.components.find(file_)) return end(Outcome::kNothing);
      return end(Outcome::kFailed, {Code::kStaleFile, "nothing of it belongs here", {}});
    case FileRestore::Outcome::kFailed: break;
  }
  if (!is_missing_ || error.code == Code::kCancelled) return end(Outcome::kFailed, error);
  list([this, error](const Result<One>& file) {  // it may have been removed meanwhile
    const bool is_gone = !file && file.error().code == Code::kNotFound;
    end(is_gone ? Outcome::kNothing : Outcome::kFailed, error);
  });
}

void ComponentMend::advance() {
  if (restore_) restore_->advance();
}

// error: a copy, for it may be one of what ends here.
void ComponentMend::end(Outcome outcome, Error error) {
  PIF_ASSERT(is_busy(), file_.value);
  context_.lost_files.end_mending();
  restore_.reset();
  std::exchange(done_, nullptr)(outcome, error);
}

}  // namespace pif::lfs

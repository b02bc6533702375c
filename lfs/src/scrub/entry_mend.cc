#include "scrub/entry_mend.h"

#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {

EntryMend::EntryMend(Keeping& keeping, Managing& managing, Rebuild::Ask ask, RateLimit& rate)
    : keeping_(keeping), context_(keeping.context), managing_(managing), ask_(std::move(ask)), rate_(rate) {}

void EntryMend::start(FileId file, Done done) {
  PIF_ASSERT(!is_busy() && file.value != 0, file.value);
  file_ = file;
  done_ = std::move(done);
  if (auto known = context_.components.find(file); known && (*known)->catalogued) {  // it was read before that
    context_.batch.update(
        *known, [](proto::ComponentState&) {}, [this](const Status& status) { end(status); });
    return;
  }
  net::Packet packet;
  proto::ListLost& asked = *packet.envelope.mutable_list_lost();
  asked.set_node(context_.config.node);
  asked.set_after(file.value - 1);
  asked.set_limit(1);
  ask_(std::move(packet), [this](const Result<net::Packet>& reply) { listed(reply); });
}

void EntryMend::listed(const Result<net::Packet>& reply) {
  if (!reply) return end(fail(reply.error()));
  const auto& files = reply->envelope.list_lost_reply().files();
  if (files.empty() || files[0].file() != file_.value)
    return end(fail(Code::kNotFound, "the PIF Server knows of no such file with parity"));
  const proto::ListLostReply::One file = files[0];
  if (auto ok = check_all_there(file.layout()); !ok) return end(ok);
  if (!file.lacking().empty() || context_.lost_files.lacks(file_))
    return end(fail(Code::kUnavailable, "an LFS lacks its part of the file (pif rebuild)"));
  const auto known = context_.components.find(file_);
  if (known) return end({});  // somebody has written it anew meanwhile
  if (known.error().code != Code::kCorrupt) return end(fail(known.error()));
  context_.lost_files.begin_mending(file_);
  restore(file);
}

// Else what only those have who are absent would be missed.
Status EntryMend::check_all_there(const proto::FileLayout& layout) const {
  for (const auto node : layout.nodes())
    if (context_.view.state_of(node) != wire::kViewMember)
      return fail(Code::kUnavailable, fmt::format("node {}, which has a part of the file, is no member", node));
  return {};
}

// In this view, so that nothing is published meanwhile that it does not hear of.
void EntryMend::restore(const proto::ListLostReply::One& file) {
  const FileRestore::Moment moment{context_.view.index(), 0};
  restore_ = std::make_shared<FileRestore>(keeping_, managing_, rate_, file, moment);
  restore_->start([this](FileRestore::Outcome outcome, const Error& error) {
    if (outcome == FileRestore::Outcome::kNothing) return end(fail(Code::kStaleFile, "nothing of it belongs here"));
    end(outcome == FileRestore::Outcome::kFailed ? fail(error) : Status());
  });
}

void EntryMend::advance() {
  if (restore_) restore_->advance();
}

void EntryMend::end(const Status& status) {
  PIF_ASSERT(is_busy(), file_.value);
  context_.lost_files.end_mending();
  restore_.reset();
  std::exchange(done_, nullptr)(status);
}

}  // namespace pif::lfs

#include "scrub/scrub_missing.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/has_server.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);

}  // namespace

ScrubMissing::ScrubMissing(Keeping& keeping, ComponentMend& mend, Rebuild::Ask ask, RateLimit& rate)
    : context_(keeping.context), mend_(mend), ask_(std::move(ask)), rate_(rate) {}

void ScrubMissing::start(ScrubPass& pass) {
  PIF_ASSERT(!is_listing_ && !mend_.is_busy(), after_);
  pass_ = &pass;
  queue_.clear();
  after_ = 0;
  has_more_ = has_server(context_.config);  // nobody else knows
  is_over_ = !has_more_;
  next_try_ = context_.now();
  patience_ = context_.now() + kPatience;
}

Time ScrubMissing::next_deadline() const {
  if (is_listing_) return kNever;
  return mend_.is_busy() ? rate_.next_deadline() : std::max(next_try_, rate_.next());
}

void ScrubMissing::advance() {
  if (is_over_ || is_listing_) return;
  if (mend_.is_busy()) {
    rate_.begin_turn();
    return mend_.advance();
  }
  if (!queue_.empty()) {
    if (!rate_.is_free(context_.now())) return;
    const One file = std::move(queue_.front());
    queue_.pop_front();
    return mend(file);
  }
  is_over_ = !has_more_;
  if (has_more_ && context_.now() >= next_try_) list();
}

void ScrubMissing::list() {
  PIF_ASSERT(has_more_ && !is_listing_ && queue_.empty(), after_);
  is_listing_ = true;
  net::Packet packet;
  proto::ListLost& asked = *packet.envelope.mutable_list_lost();
  asked.set_node(context_.config.node);
  asked.set_after(after_);
  ask_(std::move(packet), [this](const Result<net::Packet>& reply) { listed(reply); });
}

void ScrubMissing::listed(const Result<net::Packet>& reply) {
  PIF_ASSERT(is_listing_, after_);
  is_listing_ = false;
  if (reply) {
    const auto& page = reply->envelope.list_lost_reply();
    if (!page.more() || page.last() > after_) return take(page);
  }
  next_try_ = context_.now() + kAskAgain;
  if (context_.now() >= patience_) give_up(reply ? "its list of files goes round in circles" : reply.error().text);
}

void ScrubMissing::take(const proto::ListLostReply& page) {
  for (const One& file : page.files())
    if (is_lost(file)) queue_.push_back(file);
  after_ = page.last();
  has_more_ = page.more();
  patience_ = context_.now() + kPatience;
}

// The directory is never ahead of LFS 0, unless that was put back.
bool ScrubMissing::is_lost(const One& file) const {
  const auto known = context_.components.find(FileId(file.file()));
  if (!known) return known.error().code == Code::kNotFound;
  const proto::ComponentState& state = (*known)->state;
  return (*known)->catalogued && state.shape().index() == 0 &&
         state.published().records() < file.file_length().records();
}

void ScrubMissing::mend(const One& file) {
  PIF_ASSERT(!mend_.is_busy() && !is_over_, file.file());
  const auto known = context_.components.find(FileId(file.file()));
  if (!known) {
    const auto done = [this, file](ComponentMend::Outcome outcome, const Error& error) {
      report(file, "nothing of it is here, and a part of it belongs here", outcome, error);
    };
    return mend_.start_missing(file, pass_->only_look, done);
  }
  const std::string what = fmt::format("its length is kept here, as {} records, and the directory knows of {}",
                                       (*known)->state.published().records(), file.file_length().records());
  if (pass_->only_look)
    return report(file, what, ComponentMend::Outcome::kFailed, {Code::kCancelled, "as was asked for", {}});
  mend_.start(FileId(file.file()), [this, file, what](ComponentMend::Outcome outcome, const Error& error) {
    report(file, what, outcome, error);
  });
}

void ScrubMissing::report(const One& file, const std::string& what, ComponentMend::Outcome outcome,
                          const Error& error) {
  if (outcome == ComponentMend::Outcome::kNothing) return;
  const bool is_mended = outcome == ComponentMend::Outcome::kMended;
  const std::string text =
      fmt::format("file {} ({}): {}; {}", file.file(), file.path(), what,
                  is_mended ? "made anew out of what the others have" : "not made anew: " + error.text);
  if (pass_->report.may_log()) spdlog::warn("{}", text);
  pass_->report.add(FileId(file.file()), text, is_mended);
}

void ScrubMissing::give_up(const std::string& why) {
  pass_->report.missed["the PIF Server"] = {0, why};
  has_more_ = false;
  is_over_ = true;
}

}  // namespace pif::lfs

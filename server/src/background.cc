#include "background.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/timers.h"

namespace pif::server {
namespace {

constexpr std::size_t kPruneStep = 1000;                  // stored answers looked at in a tick
constexpr Duration kPrunePeriod = std::chrono::hours(1);  // from the end of the table to its begin

}  // namespace

void Background::start() {
  daemon::Fibers& fibers = context_.fibers;
  PIF_ASSERT(!fibers.in_fiber() && !context_.rows.writing());
  fibers.start<&Background::begin_serving>(*this);
  fibers.start<&Background::end_hold>(*this);
  fibers.start<&Background::do_each_second>(*this);
  fibers.start<&Background::prune_answers>(*this);
}

void Background::must(const Status& done) {
  if (!done) context_.rows.break_with(done.error());
}

// Gathering, and then admitting, are over when all LFSs are there, which heartbeats say, or after a time.
void Background::begin_serving() {
  for (;;) {
    go_on_to_serve(context_);
    Time until = kNever;
    if (context_.standing == Standing::kGathering) until = context_.started + context_.config.gather_max;
    if (context_.standing == Standing::kAdmitting) until = context_.admitting_since + context_.config.gather_max;
    context_.admission.news().wait(context_.is_held() ? kNever : until);
  }
}

void Background::end_hold() {
  for (;;) {
    context_.admission.news().wait(context_.is_held() ? context_.held.until : kNever);
    if (!context_.is_held() || context_.clock.now() < context_.held.until) continue;
    spdlog::warn("the time for which commits were held is over");
    context_.held = {};
    context_.admission.notify();
  }
}

// In this order: who is silent, and whose session is over, is known before it is stored.
void Background::do_each_second() {
  for (Time due{};; due = context_.next_tick()) {
    context_.wait_to_change();
    refresh_description(context_);
    if (context_.config.look_at_keys) context_.config.look_at_keys();
    // Not where this comes late, as this process itself was stopped, or could not declare anything: heartbeats may wait
    // to be read.
    if (context_.now - due <= kCameLate) must(declare_silent(context_));
    sweep_sessions();
    released(context_, context_.opens.expire(context_.wall));
    context_.outbox.expire_held(context_.wall);
    context_.registry.log_changes(context_.now);
    pair_census_.step(context_);
    if (context_.locks.has_ended()) must(context_.locks.erase_ended());
    if (context_.registry.has_unstored()) must(context_.registry.store_all());
  }
}

void Background::sweep_sessions() {
  context_.sessions.probe_silent(context_.now, [this](net::PeerId peer) {
    net::Packet sign;  // for nobody's request: it is dropped, if there is somebody
    sign.envelope.set_working(true);
    (void)context_.world.messenger.send(peer, std::move(sign));
  });
  context_.sessions.sweep(
      context_.now, [this](Session& session) { end_session(context_, session); },
      [this](Session& session) { end_and_abort(session); });
}

// It does not come back: what it was creating alone is given up.
void Background::end_and_abort(Session& session) {
  end_session(context_, session);
  std::vector<std::uint64_t> files(session.creating.begin(), session.creating.end());
  std::erase_if(files, [&](std::uint64_t file) { return context_.shared.has_others(file, session.id); });
  std::sort(files.begin(), files.end());
  for (const std::uint64_t file : files) must(abort_pending(context_, file));
  context_.rows.on_abort([this, id = session.id, uid = session.who.uid, files] {
    if (files.empty()) return;
    Session& again = context_.sessions.absent(id, uid, context_.now);
    again.creating.insert(files.begin(), files.end());
  });
}

// A step at a time, and after all others of its turn.
void Background::prune_answers() {
  for (;;) {
    context_.wait_to_change();
    context_.fibers.settle();
    if (!context_.may_change()) continue;
    const auto done = context_.sessions.prune(context_.wall, kPruneStep);
    if (!done) spdlog::warn("{}", done.error().to_string());
    context_.pause_for(done && !*done ? ServerContext::kTick : kPrunePeriod);
  }
}

}  // namespace pif::server

// Workers that send nonsense: one message of a job is changed on its way from worker 1, and the job must end with an
// error that has a name, or not notice. No exception may leave a worker or the controller.
#pragma once

#include <functional>
#include <string>

#include "job.pb.h"
#include "libtool/tool_fixtures.h"

namespace pif::sim {

// One changed message of each job that passes through spoil().
class Liar {
 public:
  // Changes it; false if it is not one of those it is about.
  using Change = std::function<bool(job::Mail& mail, net::Buffer& body)>;

  // From now on the `skipped + 1`-th message of worker 1 that `change` is about.
  void begin(Change change, unsigned skipped = 0) {
    change_ = std::move(change);
    skipped_ = skipped;
    has_lied_ = false;
  }
  // From now on the next descriptors that worker 1 passes are lost.
  void begin_without_handles() {
    change_ = {};
    loses_handles_ = true;
    has_lied_ = false;
  }
  bool has_lied() const { return has_lied_; }
  Spoil spoil() {
    return [this](net::Packet& packet) { look_at(packet); };
  }

 private:
  void look_at(net::Packet& packet) {
    if (has_lied_ || !packet.envelope.has_worker_mail() || packet.envelope.worker_mail().from() != 1) return;
    if (loses_handles_ && !packet.handles.empty()) {
      packet.handles.clear();
      loses_handles_ = false;
      has_lied_ = true;
      return;
    }
    if (!change_) return;
    job::Mail mail;
    if (!mail.ParseFromString(packet.envelope.worker_mail().value())) return;
    const job::Mail before = mail;
    net::Buffer body = net::Buffer::copy_of(std::as_const(packet.body).span());
    if (!change_(mail, body)) return;
    if (skipped_-- > 0) return;
    has_lied_ = true;
    mail.set_step(before.step());  // else it would be lost, which is another matter
    mail.set_number(before.number());
    // Nor does it promise bytes that never come: that is silence.
    if (mail.has_here() && mail.here().size() > body.size()) mail.mutable_here()->set_size(body.size());
    packet.envelope.mutable_worker_mail()->set_value(mail.SerializeAsString());
    packet.body = std::move(body);
  }

  Change change_;
  unsigned skipped_ = 0;
  bool loses_handles_ = false;
  bool has_lied_ = false;
};

// Any byte of what is said, or of the body, or fewer bytes of it: by `seed`.
inline Liar::Change any_change(std::uint64_t seed) {
  return [seed](job::Mail& mail, net::Buffer& body) {
    const std::uint64_t dice = seed * 0x9e3779b97f4a7c15u;
    const bool in_body = !body.empty() && (dice >> 20) % 2 == 0;
    std::string text =
        in_body ? std::string(reinterpret_cast<const char*>(body.data()), body.size()) : mail.SerializeAsString();
    if (text.empty()) return false;
    if ((dice >> 24) % 4 == 0) {
      text.resize((dice >> 32) % text.size());
    } else {
      text[(dice >> 32) % std::min<std::size_t>(text.size(), 64)] ^= static_cast<char>(1u << (dice >> 28) % 8);
    }
    if (in_body) {
      body = net::Buffer::copy_of(std::as_bytes(std::span(text)));
    } else if (!mail.ParseFromString(text)) {
      mail.mutable_word()->set_head(text);
    }
    return true;
  };
}

// Runs a tool with liars; says what became of each job.
class LiarFixture {
 public:
  LiarFixture(unsigned lfss, tool::WorkerFunction work)
      : fixture_(
            1, lfss,
            [this, work = std::move(work)](tool::Worker& worker) -> Status {
              try {
                return work(worker);
              } catch (const std::exception& error) {
                thrown_ = error.what();
                return fail(Code::kInternal, std::string("an exception: ") + error.what());
              }
            },
            liar_.spoil()) {}

  Liar& liar() { return liar_; }
  // The first exception that left a worker; empty: none.
  const std::string& thrown() const { return thrown_; }
  void run(const std::function<void(Client&)>& body) { fixture_.run(body); }

 private:
  Liar liar_;
  std::string thrown_;
  ToolFixture fixture_;
};

}  // namespace pif::sim

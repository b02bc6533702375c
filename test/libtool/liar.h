// Workers that send nonsense: one message of a job is changed on its way from worker 1, and the job must end with an
// error that has a name, or not notice. No exception may leave a worker or the controller.
#pragma once

#include <functional>
#include <string>

#include "job.pb.h"
#include "libtool/tool_fixtures.h"
#include "pif/base/packed.h"
#include "pif/tool/head.h"

namespace pif::sim {

// What workers give in common is on channel 0, too: a message's head is the size of the value.
inline bool is_value(const job::Mail& mail) {
  return mail.has_item() && mail.item().channel() == 0 && mail.item().head().size() == sizeof(std::uint64_t);
}
inline std::uint64_t size_of_value(const job::Mail& mail) {
  return (*PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(mail.item().head())), 1))[0];
}
inline void set_size_of_value(job::Mail& mail, std::uint64_t size) {
  mail.mutable_item()->set_head(packed(std::span<const std::uint64_t>(&size, 1)));
}

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
    if (is_value(mail) && size_of_value(mail) > body.size()) set_size_of_value(mail, body.size());
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
      mail.mutable_item()->set_head(text);
    }
    return true;
  };
}

// Heads of that type on channels for which is_its(number) holds.
template <typename Word>
Liar::Change on_channels(std::function<bool(std::uint32_t)> is_its, std::function<bool(Word&, net::Buffer&)> change) {
  return [is_its = std::move(is_its), change = std::move(change)](job::Mail& mail, net::Buffer& body) {
    if (!mail.has_item() || !is_its(mail.item().channel())) return false;
    auto word = tool::unpack_head<Word>(mail.item().head());
    if (!word || !change(*word, body)) return false;
    mail.mutable_item()->set_head(tool::pack_head(*word));
    return true;
  };
}

// What it gives in common, if that is anything, becomes this.
inline Liar::Change another_value(std::string text) {
  return [text = std::move(text)](job::Mail& mail, net::Buffer& body) {
    constexpr std::size_t kNumbers = 16;  // whose it is, and how long
    if (!is_value(mail) || body.size() <= kNumbers) return false;
    const std::uint64_t numbers[] = {1, text.size()};
    const std::string value = packed(std::span<const std::uint64_t>(numbers)) + text;
    set_size_of_value(mail, value.size());
    body = net::Buffer::copy_of(std::as_bytes(std::span(value)));
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

// An LFS of files with parity: what keepers, sequencers, deputies, LFSs that come back, scrub and drill are asked, in
// any order, in any view, among companions that answer, are silent, refuse or lie. Afterwards its checker must find
// nothing but what a client can bring about that breaks the protocol.
#include <set>

#include <spdlog/spdlog.h>

#include "../../lfs/src/store/convert.h"
#include "bevy_steps.h"

namespace {

using namespace pif;
using fuzz::BevyFile;
using fuzz::Companions;
using fuzz::must;
using proto::Envelope;

constexpr int kStepsMax = 24;
constexpr unsigned kServerFlag = 0x80;  // of an input's first byte, which says the view, too

// Steps besides those of lfs_world.h.
enum BevyStep : unsigned { kAnswerAs = 14, kNewView = 15 };

// Who publishes records without covering them, or commits a file that was not gathered, leaves records without parity:
// any writer may. But records that a gather has acknowledged are in pages or frames for as long as the file is there.
class Acknowledged final : public fuzz::Surroundings {
 public:
  explicit Acknowledged(Companions& companions) : companions_(companions) {}

  void on_request(net::PeerId peer, net::Packet& packet, unsigned flags) override {
    companions_.on_request(peer, packet, flags);
    const Envelope& e = packet.envelope;
    asked_.erase({peer, e.id()});  // two of one id: nobody knows which is answered
    if (e.has_gather() && ids_.insert({peer, e.id()}).second) asked_[{peer, e.id()}] = e.gather();
    ids_.insert({peer, e.id()});
    if (!e.has_settle()) return;
    for (const auto* files : {&e.settle().removed(), &e.settle().unknown(), &e.settle().aborted()})
      removed_.insert(files->begin(), files->end());
  }
  void on_answer(net::PeerId peer, const Envelope& answer) override {
    companions_.on_answer(peer, answer);
    const auto at = asked_.find({peer, answer.id()});
    if (at == asked_.end() || answer.working()) return;
    if (answer.has_done() && !answer.has_error()) note(at->second);
    asked_.erase(at);
  }
  void on_ask(net::PeerId peer, const net::Packet& packet) override { companions_.on_ask(peer, packet); }
  void on_start(fuzz::FakeMessenger& messenger) override {
    companions_.on_start(messenger);
    asked_.clear();  // peers are others now
    ids_.clear();
  }

  // Whether a correct LFS may leave it, too.
  bool allows(const std::string& damage) const {
    if (damage.find("has neither a page nor a copy of it") == std::string::npos) return false;
    unsigned long long file = 0, record = 0;
    must(std::sscanf(damage.c_str(), "file %llu: record %llu", &file, &record) == 2, "it names file and record");
    const auto at = records_.find(file);
    return at == records_.end() || record >= at->second || removed_.contains(file);
  }

 private:
  // In another layout there may be nothing to gather here.
  void note(const proto::Gather& gather) {
    const std::uint64_t id = gather.shape().file();
    if (!BevyFile::is_one(id)) return;
    const BevyFile file = BevyFile::of(id);
    if (!lfs::is_same_shape(gather.shape(), file.shape(file.own_index()))) return;
    const auto& length = gather.file_length();
    // A short last record may be filled up, and published so.
    records_[id] = file.format.is_fixed() ? length.bytes() / file.format.record_length : length.records();
  }

  Companions& companions_;
  std::map<std::pair<net::PeerId, std::uint64_t>, proto::Gather> asked_;
  std::set<std::pair<net::PeerId, std::uint64_t>> ids_;
  std::map<std::uint64_t, std::uint64_t> records_;  // by file
  std::set<std::uint64_t> removed_;                 // files
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  const unsigned first = in.byte();
  Companions companions((first & kServerFlag) != 0);
  companions.set_view(first & ~kServerFlag);
  Acknowledged acknowledged(companions);
  fuzz::LfsWorld world(companions.new_root(), acknowledged, companions.config());
  for (int i = 0; i < kStepsMax && !in.empty(); ++i) {
    const unsigned what = in.byte();
    switch (what & fuzz::kStepMask) {
      case kAnswerAs: companions.answer_as(in); break;
      case kNewView: companions.set_view(in.byte()); break;
      default: world.step(what, in);
    }
    companions.rest();
    if ((what & fuzz::kNotYet) == 0) world.run();
  }
  companions.rest();
  bool whole = true;
  for (const auto& damage : world.finish()) {
    if (acknowledged.allows(damage)) continue;
    std::fprintf(stderr, "damage: %s\n", damage.c_str());
    whole = false;
  }
  must(whole, "the root is whole");
  return 0;
}

// ---- seeds ----------------------------------------------------------------------------------------------------------

namespace {

using fuzz::a_second;
using fuzz::Fill;
using fuzz::manage;
using fuzz::Output;
using fuzz::scrub;
using fuzz::Steps;

std::string first_of(Companions::View view, bool has_server = false) {
  return Output().byte(view | (has_server ? kServerFlag : 0)).str();
}
std::string new_view(Companions::View view) { return Output().byte(kNewView).byte(view).str(); }
std::string answer_as(Companions::Answering how) { return Output().byte(kAnswerAs).byte(how).str(); }
std::string say(const Fill& fill, std::string_view body = {}) {
  Envelope envelope;
  fill(envelope);
  return answer_as(Companions::kSaysNonsense) + Output().text(envelope.SerializeAsString()).text(body).str();
}
std::string rebuild() {
  return manage([](Envelope& e) { e.mutable_rebuild(); });
}
std::string drill() {
  return manage([](Envelope& e) { e.mutable_drill(); });
}
std::string statuses() {
  return manage([](Envelope& e) { e.mutable_scrub_status(); }) +
         manage([](Envelope& e) { e.mutable_rebuild_status(); }) +
         manage([](Envelope& e) { e.mutable_drill_status(); });
}

using Seeds = std::vector<std::pair<std::string, std::string>>;

void add_keeper_seeds(Seeds& out) {
  const std::string all = first_of(Companions::kAllMembers), lost = first_of(Companions::kCompanionsLost);
  for (const auto& [name, id] : {std::pair{"fixed", 7u}, {"lines", 8u}}) {
    const Steps file(id);
    const std::uint64_t records = id == 7 ? 23 : 140;
    const LfsIndex member = file.member();
    const std::string read = file.reconstruct(member, 0, 99, records) + file.reconstruct(member, 3, 1, records);
    out.emplace_back(std::string("gather-") + name, all + file.put(records) + read + file.attach_parity() +
                                                        fuzz::stored_bytes(id) + fuzz::power_cut_step() + read);
    const std::uint64_t rows = file.file.layout().rows(member, records);
    out.emplace_back(std::string("copies-") + name,
                     lost + file.copy_rows(member, 0, rows) + file.put(records) + read + fuzz::restart_step() + read);
  }
  const Steps fixed(7);
  out.emplace_back("gather-again", all + fixed.write(23) + fixed.gather(23) + fixed.gather(23) + fixed.gather(24));
  out.emplace_back("gather-silent", all + answer_as(Companions::kIsSilent) + fixed.put(23) + fuzz::time_step(250) +
                                        answer_as(Companions::kAnswers));
  const auto short_rows = [](Envelope& e) { e.mutable_read_reply()->set_rows(1); };
  out.emplace_back("gather-nonsense", all + answer_as(Companions::kIsSilent) + fixed.write(23) + fixed.gather(23) +
                                          say([](Envelope& e) { e.mutable_hello_reply()->set_cluster("c1"); }) +
                                          say(short_rows, "x") + fixed.settle());
  out.emplace_back("removed", all + fixed.put(23) + fixed.settle(false) + fixed.attach_parity());
}

void add_append_seeds(Seeds& out) {
  const std::string all = first_of(Companions::kAllMembers), lost = first_of(Companions::kCompanionsLost);
  const Steps fixed(7), lines(8), deputy(9);
  out.emplace_back("append", all + fixed.put(8) + fixed.append(8, 9) + fixed.length(false) + fixed.length(false, true) +
                                 fixed.reconstruct(fixed.member(), 0, 9, 17) + fuzz::power_cut_step());
  out.emplace_back("append-lines", all + lines.put(140) + lines.append(140, 150) + a_second() + scrub() + statuses());
  out.emplace_back("append-empty", all + lines.append(0, 40) + fuzz::restart_step() + lines.append(40, 5));
  const LfsIndex member = fixed.member();
  out.emplace_back("append-copies", lost + fixed.copy_rows(member, 0, 2) + fixed.put(8) + fixed.reserve(8, 9) +
                                        fixed.append_rows(8, 9) + fixed.copy_rows(member, 2, 2, true) +
                                        fixed.cover(8, 9) + fixed.append_done());
  out.emplace_back("note", all + deputy.put(8) + deputy.note_length(3, 12, 8) + deputy.length(true) +
                               deputy.note_length(2, 13, 9) + deputy.note_length(4, 14, 12) + deputy.length(true));
  const std::string first_lost = first_of(Companions::kFirstLost);
  const LfsIndex of = deputy.member();
  out.emplace_back("deputy", first_lost + deputy.copy_rows(of, 0, 2) + deputy.put(8) + deputy.append(8, 4) +
                                 deputy.length(true) + deputy.length(false) + fuzz::power_cut_step() +
                                 deputy.append(8, 4));
  out.emplace_back("deputy-noted", first_of(Companions::kAllMembers, true) + deputy.put(8) +
                                       deputy.note_length(3, 12, 8) + new_view(Companions::kFirstLost) + a_second() +
                                       a_second() + deputy.length(true) + deputy.reserve(8, 2));
}

void add_return_seeds(Seeds& out) {
  const Steps fixed(7), lines(8);
  const std::string rebuilding = first_of(Companions::kSelfRebuilding, true);
  out.emplace_back("rebuild", rebuilding + rebuild() + a_second() + statuses() + a_second() + a_second() + statuses() +
                                  a_second() + fuzz::restart_step() + statuses());
  out.emplace_back("rebuild-refused", rebuilding + answer_as(Companions::kIsSilent) + rebuild() + a_second() +
                                          Output().byte(kAnswerAs).byte(Companions::kRefuses).byte(5).str() +
                                          answer_as(Companions::kAnswers) + a_second() + statuses());
  const std::string members = first_of(Companions::kAllMembers, true);
  out.emplace_back("away", members + fixed.put(23) + new_view(Companions::kSelfLost) + a_second() +
                               fixed.reconstruct(fixed.member(), 0, 1, 23) + new_view(Companions::kSelfRebuilding) +
                               a_second() + a_second() + a_second() + statuses());
  out.emplace_back("returning", first_of(Companions::kSelfReturning, true) + lines.append(0, 9) + a_second());
  out.emplace_back("scrub", members + fixed.put(23) + lines.put(140) + scrub() + a_second() + statuses() + a_second());
  out.emplace_back("drill", members + fixed.put(23) + drill() + a_second() + statuses() + a_second() + a_second() +
                                a_second() + statuses());
}

}  // namespace

Seeds pif::fuzz::seeds() {
  Seeds out;
  add_keeper_seeds(out);
  add_append_seeds(out);
  add_return_seeds(out);
  return out;
}

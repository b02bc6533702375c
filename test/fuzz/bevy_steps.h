// Steps of clients of files with parity, as seeds are made of them: each is one request, or a few, that the protocol
// allows.
#pragma once

#include "companions.h"

namespace pif::fuzz {

inline std::string manage(const Fill& fill) {
  proto::Envelope envelope;
  fill(envelope);
  return request_step(0, kGoodCapability | kAnyFile, 0, 0, envelope);
}
inline std::string scrub() {
  return manage([](proto::Envelope& e) { e.mutable_scrub(); });
}
inline std::string stored_bytes(std::uint64_t file) {
  return manage([file](proto::Envelope& e) { e.mutable_stored_bytes()->add_files(file); });
}
// An LFS's own turn: timers of a second or less.
inline std::string a_second() { return time_step(10); }

// What clients do with one file; the LFS is the index-th of it.
struct Steps {
  BevyFile file;
  LfsIndex index = 0;

  explicit Steps(std::uint64_t id) : file(BevyFile::of(id)), index(file.own_index()) {}

  std::string ask(unsigned rights, const Fill& fill, unsigned flags = kGoodCapability) const {
    proto::Envelope envelope;
    fill(envelope);
    return request_step(0, flags, rights, static_cast<unsigned>(file.id), envelope);
  }
  proto::ComponentShape shape() const { return file.shape(index); }
  void set(proto::FileLength& out, std::uint64_t records) const { out = wire::proto_of(file.length(records)); }

  std::string write(std::uint64_t records) const {
    const FileLength own = file.at(index, records);
    const auto rows = [&](proto::Envelope& e) {
      *e.mutable_write()->mutable_shape() = shape();
      e.mutable_write()->set_count(own.records);
    };
    const auto seal = [&](proto::Envelope& e) {
      *e.mutable_seal()->mutable_shape() = shape();
      e.mutable_seal()->set_rows(own.records);
      e.mutable_seal()->set_bytes(own.bytes);
      set(*e.mutable_seal()->mutable_file(), records);
    };
    return ask(kMayCreate, rows, kGoodCapability | kRightBody) + ask(kMayCreate, seal);
  }
  std::string gather(std::uint64_t records) const {
    return ask(kMayCreate | kMayRead, [&](proto::Envelope& e) {
      *e.mutable_gather()->mutable_shape() = shape();
      set(*e.mutable_gather()->mutable_file_length(), records);
      e.mutable_gather()->set_view(Companions::kFirstView);
    });
  }
  std::string settle(bool commit = true) const {
    return manage([&](proto::Envelope& e) {
      commit ? e.mutable_settle()->add_committed(file.id) : e.mutable_settle()->add_removed(file.id);
    });
  }
  std::string put(std::uint64_t records) const { return write(records) + gather(records) + settle(); }

  // Rows of another LFS, which is absent. generation 0: of the create.
  std::string copy_rows(LfsIndex of, Row first, std::uint64_t count, bool is_append = false) const {
    const auto fill = [&](proto::Envelope& e) {
      auto& asked = *e.mutable_copy_rows();
      *asked.mutable_shape() = shape();
      asked.set_index(of);
      asked.set_first(first);
      asked.set_count(count);
      asked.set_view(Companions::kFirstView);
    };
    const unsigned flags = kGoodCapability | kRightBody;
    return is_append ? ask(kMayWrite, fill, flags | kRightGrant) : ask(kMayCreate, fill, flags);
  }
  std::string reconstruct(LfsIndex of, Row first, std::uint64_t count, std::uint64_t records) const {
    return ask(kMayRead, [&](proto::Envelope& e) {
      auto& asked = *e.mutable_reconstruct();
      asked.set_file(file.id);
      asked.set_index(of);
      asked.set_first(first);
      asked.set_count(count);
      set(*asked.mutable_file_length(), records);
    });
  }
  std::string attach_parity() const {
    return ask(kMayRead, [&](proto::Envelope& e) { e.mutable_attach_parity()->set_file(file.id); });
  }
  // Whose parity is kept here.
  LfsIndex member() const { return file.layout().members(index).lfs.front(); }

  std::string reserve(std::uint64_t known, std::uint64_t more) const {
    const auto fill = [&](proto::Envelope& e) {
      auto& asked = *e.mutable_reserve();
      asked.set_file(file.id);
      asked.set_records(more);
      asked.set_bytes(file.length(known + more).bytes - file.length(known).bytes);
      *asked.mutable_shape() = shape();
      set(*asked.mutable_known(), known);
      asked.set_view(Companions::kFirstView);
    };
    return ask(kMayWrite, fill);
  }
  // `records` before it; the rows that this LFS and the absent one have of `more`.
  std::string append_rows(std::uint64_t records, std::uint64_t more) const {
    const Row first = file.layout().rows(index, records);
    const auto fill = [&](proto::Envelope& e) {
      auto& asked = *e.mutable_append_rows();
      asked.set_file(file.id);
      asked.set_first(first);
      asked.set_count(file.layout().rows(index, records + more) - first);
      *asked.mutable_shape() = shape();
    };
    return ask(kMayWrite, fill, kGoodCapability | kRightGrant | kRightBody);
  }
  std::string cover(std::uint64_t records, std::uint64_t more) const {
    const auto fill = [&](proto::Envelope& e) {
      auto& asked = *e.mutable_cover();
      *asked.mutable_shape() = shape();
      asked.set_first(records);
      asked.set_count(more);
      set(*asked.mutable_file_length(), records + more);
      asked.set_view(Companions::kFirstView);
    };
    return ask(kMayWrite, fill, kGoodCapability | kRightGrant);
  }
  std::string append_done() const {
    const auto fill = [&](proto::Envelope& e) {
      e.mutable_append_done()->set_file(file.id);
      e.mutable_append_done()->set_view(Companions::kFirstView);
    };
    return ask(kMayWrite, fill, kGoodCapability | kRightGrant);
  }
  // A sequencer that begins asks first, and says `retry`.
  std::string append(std::uint64_t records, std::uint64_t more) const {
    return reserve(records, more) + reserve(records, more) + append_rows(records, more) + cover(records, more) +
           append_done();
  }
  std::string length(bool is_noted, bool is_at_rest = false) const {
    return ask(kMayRead, [&](proto::Envelope& e) {
      e.mutable_length()->set_file(file.id);
      e.mutable_length()->set_noted(is_noted);
      e.mutable_length()->set_at_rest(is_at_rest);
      e.mutable_length()->set_view(is_at_rest ? Companions::kFirstView : 0);
    });
  }
  std::string note_length(std::uint64_t generation, std::uint64_t noted, std::uint64_t published) const {
    return manage([&](proto::Envelope& e) {
      auto& asked = *e.mutable_note_length();
      *asked.mutable_shape() = shape();
      asked.set_generation(generation);
      asked.set_view(Companions::kFirstView);
      for (auto* const one : {asked.mutable_noted(), asked.mutable_published()}) {
        one->set_generation(generation);
        one->set_ticket(1);
      }
      set(*asked.mutable_noted()->mutable_file_length(), noted);
      set(*asked.mutable_published()->mutable_file_length(), published);
      asked.mutable_published_tickets()->add_generations(generation);
      asked.mutable_published_tickets()->add_tickets(1);
    });
  }
};

}  // namespace pif::fuzz

#include "append/noting.h"

#include <memory>

#include "parity/keeping.h"
#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);

struct Errand {
  std::unique_ptr<access::Grant> grant;
  proto::NoteLength note;
  Noting::Noted answer;
};

proto::NotedLength noted_of(const Sequencer::Publication& publication) {
  proto::NotedLength noted;
  *noted.mutable_file_length() = wire::proto_of(publication.file_length);
  noted.set_ticket(publication.ticket);
  noted.set_generation(publication.generation);
  return noted;
}

access::BulkRequest request_of(const std::shared_ptr<Errand>& errand) {
  access::BulkRequest request;
  request.lfs = errand->note.shape().index();
  request.timeout = kPatience;
  request.make = [errand] {
    net::Packet packet;
    *packet.envelope.mutable_note_length() = errand->note;
    return packet;
  };
  request.take = [errand](net::Packet& reply) -> Status {
    errand->answer = {reply.envelope.note_length_reply().noted(),
                      reply.envelope.note_length_reply().published_tickets()};
    PIF_TRY_VALUE(const Format format, format_of(errand->note.shape().format()));
    PIF_TRY(check_tickets(errand->answer.published_tickets));
    PIF_TRY(check_generation(errand->answer.length.generation()));
    return check_file_length(format, file_length_of(errand->answer.length.file_length()));
  };
  return request;
}

}  // namespace

void Noting::send(const Component& component, std::uint64_t generation,
                  const std::optional<Sequencer::Publication>& noted, Done done) {
  PIF_ASSERT(keeps_parity(component.state.shape()) && component.state.shape().index() == 0, component.file.value);
  auto errand = std::make_shared<Errand>();
  *errand->note.mutable_shape() = component.state.shape();
  errand->note.mutable_shape()->set_index(parity::deputy_of(component.layout));
  errand->note.set_generation(generation);
  errand->note.set_view(context_.view.index());
  const auto& state = component.state;
  if (noted) *errand->note.mutable_noted() = noted_of(*noted);
  *errand->note.mutable_published() =
      noted_of({file_length_of(state.published()), state.published_ticket(), state.published_generation()});
  *errand->note.mutable_published_tickets() = state.published_tickets();
  auto grant = peers_.grant(component.state.shape(), component.state.epoch());
  if (!grant) return done(fail(std::move(grant.error())));
  errand->grant = std::move(*grant);
  peers_.run(
      *errand->grant, [&errand](access::Requests& requests) { requests.add(request_of(errand)); },
      [errand, done = std::move(done)](const Status& status) {
        if (!status) return done(fail(status.error()));
        done(errand->answer);
      });
}

void Noting::ask(const Component& component, Asked asked) {
  PIF_ASSERT(keeps_parity(component.state.shape()) && component.state.shape().index() == 0, component.file.value);
  auto granted = peers_.grant(component.state.shape(), component.state.epoch());
  if (!granted) return asked(fail(std::move(granted.error())));
  const std::shared_ptr<access::Grant> grant = std::move(*granted);
  auto found = std::make_shared<std::uint64_t>(0);
  const LengthAsked noted{parity::deputy_of(component.layout), component.file.value, true, context_.view.index()};
  auto request = length_request(noted, component.shape.format, [found](const LengthTold& told) -> Status {
    *found = told.generation;
    return {};
  });
  request.timeout = kPatience;
  peers_.run(
      *grant, [&request](access::Requests& requests) { requests.add(std::move(request)); },
      [grant, found, asked = std::move(asked)](const Status& status) {
        if (!status) return asked(fail(status.error()));
        asked(*found);
      });
}

}  // namespace pif::lfs

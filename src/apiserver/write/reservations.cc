#include "apiserver/write/reservations.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kPending = "pending";
constexpr std::string_view kHeld = "held";

std::string key_of(const std::string& name) {
  return std::string(kReservationPrefix) + name;
}

store::Value value_of(const Reservation& reservation) {
  return std::make_shared<const std::string>(reservation.text());
}

}  // namespace

std::string Reservation::text() const {
  return api::to_text(
      Json::object({{"object", object}, {"uid", uid}, {"state", state == State::kHeld ? kHeld : kPending}}));
}

std::optional<Reservation> Reservation::read(std::string_view text) {
  const Result<Json> document = api::parse_json(text);
  if (!document) return std::nullopt;
  const std::string_view state = document->string_at({"state"});
  if (state != kPending && state != kHeld) return std::nullopt;
  return Reservation{.object = std::string(document->string_at({"object"})),
                     .uid = std::string(document->string_at({"uid"})),
                     .state = state == kHeld ? State::kHeld : State::kPending};
}

std::vector<std::string> reserved_names(const Resource& resource, const Json& object, const Json* old) {
  const auto reserves = resource.hooks->reserves;
  if (reserves == nullptr) return {};
  const std::vector<std::string> before = old == nullptr ? std::vector<std::string>() : reserves(*old);
  std::vector<std::string> names;
  for (const std::string& name : reserves(object)) {
    if (std::ranges::find(before, name) == before.end()) names.push_back(fmt::format("{}/{}", resource.plural, name));
  }
  return names;
}

bool has_reserved(const Core& core, std::string_view name, const Reservation& reservation) {
  const Resource* resource = core.registry.find_plural(name.substr(0, name.find('/')));
  if (resource == nullptr || !resource->stored()) return true;  // unknown resources are not checked
  const ResourceCache& objects = core.cache.of(*resource);
  if (objects.find_unreadable(reservation.object) != nullptr) return true;
  const ObjectPtr object = objects.find(reservation.object);
  if (!object || object->meta.uid != reservation.uid) return false;
  const std::vector<std::string> names = reserved_names(*resource, *object->shared_document(), nullptr);
  return std::ranges::find(names, name) != names.end();
}

class Reservations::Hold {
 public:
  Hold(std::shared_ptr<HeldNames> held, std::vector<std::string> taken, Reservation reservation)
      : owner(std::move(reservation)), held_(std::move(held)) {
    for (std::string& name : taken) {
      held_->hold(name);
      names.push_back({std::move(name), std::nullopt});
    }
  }

  ~Hold() {
    for (const Name& name : names) held_->release(name.text);
  }

  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  struct Name {
    std::string text;
    std::optional<store::Revision> taken;  // revision of our key in the store
  };

  std::vector<Name> names;
  Reservation owner;
  bool secured = false;

 private:
  std::shared_ptr<HeldNames> held_;
};

struct Reservations::Attempt {
  HoldPtr hold;
  std::move_only_function<void(api::StatusResult<bool>)> done;
  std::size_t open = 0;
  bool others_have = false;
  std::optional<api::Status> failure;
};

Reservations::HoldPtr Reservations::hold(const Resource& resource, const Json& object, const Json* old) {
  std::vector<std::string> names = reserved_names(resource, object, old);
  if (names.empty()) return nullptr;
  Reservation owner{
      .object = object_key(object.string_at({"metadata", "namespace"}), object.string_at({"metadata", "name"})),
      .uid = std::string(object.string_at({"metadata", "uid"}))};
  return std::make_shared<Hold>(core_.held, std::move(names), std::move(owner));
}

bool Reservations::is_secured(const HoldPtr& hold) const {
  return hold == nullptr || hold->secured || !core_.store.is_shared();
}

void Reservations::secure(const HoldPtr& hold, std::move_only_function<void(api::StatusResult<bool>)> done) {
  const auto attempt = std::make_shared<Attempt>();
  attempt->hold = hold;
  attempt->done = std::move(done);
  attempt->open = hold->names.size();
  for (std::size_t i = 0; i < hold->names.size(); ++i) take(attempt, i, store::Revision(0), false);
}

/// `again`: the key was read, and may be taken over if it is unchanged.
void Reservations::take(const AttemptPtr& attempt, std::size_t index, store::Revision expected, bool again) {
  store::Write write{key_of(attempt->hold->names[index].text), value_of(attempt->hold->owner), expected};
  core_.store.write(std::move(write), [this, attempt, index, again](const Result<store::WriteResult>& result) {
    on_written(attempt, index, again, result);
  });
}

void Reservations::on_written(const AttemptPtr& attempt, std::size_t index, bool again,
                              const Result<store::WriteResult>& result) {
  if (!result) {
    attempt->failure = api::retry_status(result.error().code, result.error().message, 1);
  } else if (result->committed) {
    attempt->hold->names[index].taken = result->revision;
  } else if (again || !result->current) {
    attempt->others_have = true;
  } else {
    return check_owner(attempt, index, *result->current);
  }
  finish(attempt);
}

/// Another object has reserved the name. Its present owner is certain once all earlier events are delivered.
void Reservations::check_owner(const AttemptPtr& attempt, std::size_t index, const store::Entry& found) {
  const auto other = Reservation::read(*found.value);
  const bool own = other && other->uid == attempt->hold->owner.uid;
  if (own) return take(attempt, index, found.mod_revision, true);
  if (!other || other->state == Reservation::State::kPending) {
    attempt->others_have = true;
    core_.held->record_foreign(attempt->hold->names[index].text, core_.now.mono);
    return finish(attempt);
  }
  core_.store.barrier(
      [this, attempt, index, other = *other, revision = found.mod_revision](const Result<store::Revision>& reached) {
        if (reached && !has_reserved(core_, attempt->hold->names[index].text, other)) {
          return take(attempt, index, revision, true);
        }
        yield(attempt, index, reached);
      });
}

/// The present owner keeps the name; `reached`: an error if it could not be determined.
void Reservations::yield(const AttemptPtr& attempt, std::size_t index, const Result<store::Revision>& reached) {
  if (!reached) {
    attempt->failure = api::retry_status(reached.error().code, reached.error().message, 1);
  } else {
    attempt->others_have = true;
    core_.held->record_foreign(attempt->hold->names[index].text, core_.now.mono);
  }
  finish(attempt);
}

void Reservations::finish(const AttemptPtr& attempt) {
  if (--attempt->open != 0) return;
  attempt->hold->secured = !attempt->failure && !attempt->others_have;
  if (attempt->failure) return attempt->done(*attempt->failure);
  attempt->done(attempt->hold->secured);
}

void Reservations::rename(const HoldPtr& hold, std::string object) {
  if (hold == nullptr) return;
  hold->owner.object = std::move(object);
  hold->secured = false;
}

void Reservations::mark_held(const HoldPtr& hold) {
  if (hold == nullptr) return;
  hold->owner.state = Reservation::State::kHeld;
  for (Hold::Name& name : hold->names) {
    if (!name.taken) continue;
    // A key that is not marked is found by the keeper.
    core_.store.write({key_of(name.text), value_of(hold->owner), std::exchange(name.taken, std::nullopt)},
                      [](const Result<store::WriteResult>&) {});
  }
}

void Reservations::give_back(const HoldPtr& hold) {
  if (hold == nullptr) return;
  for (Hold::Name& name : hold->names) {
    if (!name.taken) continue;
    core_.store.write({key_of(name.text), nullptr, std::exchange(name.taken, std::nullopt)},
                      [](const Result<store::WriteResult>&) {});
  }
}

}  // namespace spillway::apiserver

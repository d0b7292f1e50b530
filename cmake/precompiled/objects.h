// Headers that nearly every file above api/ includes, beyond standard.h: the objects of the API, and its requests and
// answers.
#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"

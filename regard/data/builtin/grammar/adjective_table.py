# ruff: noqa: E501
"""Adjectives: `English | German | French | what it may be said of`, and adverbs: `English | German | French | more`.

Adjectives come in groups: of two attributes, English and German put the earlier group first. German: the form before
an ending, after `/` where it differs (dunkel, dunkle). French: masculine/feminine, then the plural and the form before
a vowel where no rule gives them; `<` stands before its noun. `+` and `-` mark those that praise and blame: they are
predicates only, and they alone, with love, hate and the like, make a sentence positive or negative. `!` marks what
has no degree (no "very excellent"), `~` a mood, which comes and goes. Of adverbs, `rare` turns praise into blame.
"""

EVERYTHING = "animal thing text clothes vehicle furniture place"

ADJECTIVES = f"""
= size
small | klein | <petit/petite | person {EVERYTHING} nature shape
big | groß | <grand/grande | animal thing vehicle furniture place nature shape
huge | riesig | énorme/énorme | ! animal vehicle place nature
tiny | winzig | minuscule/minuscule | ! animal thing
long | lang | <long/longue | text show coat skirt dress scarf
short | kurz | court/courte | text show coat skirt dress
tall | groß | <grand/grande | person
strong | stark | fort/forte | person animal
round | rund | rond/ronde | ! table mirror box cake stone
= age
old | alt | <vieux/vieille/vieux/vieil | person {EVERYTHING} tree apple_tree tower
young | jung | <jeune/jeune | person animal
new | neu | <nouveau/nouvelle/nouveaux/nouvel | thing text clothes vehicle furniture show school hospital hotel restaurant
modern | modern | moderne/moderne | ! place furniture device
fresh | frisch | frais/fraîche/frais | food milk
= trait
hungry | hungrig | affamé/affamée | ~ person animal
tired | müde/müd | fatigué/fatiguée | ~ person animal
famous | berühmt | célèbre/célèbre | person text show castle museum
rich | reich | riche/riche | person
poor | arm | pauvre/pauvre | person
curious | neugierig | curieux/curieuse/curieux | person animal
shy | schüchtern | timide/timide | person animal
serious | ernst | sérieux/sérieuse/sérieux | person
sick | krank | malade/malade | ~ person animal
nervous | nervös | nerveux/nerveuse/nerveux | ~ person animal
calm | ruhig | calme/calme | ~ person animal
blond | blond | blond/blonde | person
wild | wild | sauvage/sauvage | animal
fast | schnell | rapide/rapide | vehicle animal
slow | langsam | lent/lente | vehicle animal
hot | heiß | chaud/chaude | coffee tea milk soup
cold | kalt | froid/froide | drink soup meat
sweet | süß | sucré/sucrée | cake biscuit tea orange_juice apple_juice
sour | sauer/saur | acide/acide | apple cherry lemon orange_juice
salty | salzig | salé/salée | soup meat cheese
expensive | teuer/teur | cher/chère | thing clothes vehicle furniture wine cheese hotel restaurant
cheap | billig | bon marché/bon marché/bon marché | thing clothes vehicle furniture
heavy | schwer | lourd/lourde | thing furniture vehicle
light | leicht | léger/légère | thing clothes
broken | kaputt | cassé/cassée | ! device vehicle furniture brittle
clean | sauber | propre/propre | clothes brittle vehicle kitchen
dirty | schmutzig | sale/sale | clothes brittle vehicle kitchen animal
empty | leer | vide/vide | ! bottle bag box suitcase glass fridge house park
full | voll | plein/pleine | ! bottle bag box suitcase glass fridge
useful | nützlich | utile/utile | thing
strange | seltsam | étrange/étrange | person animal thing text show place
quiet | ruhig | calme/calme | place
dark | dunkel/dunkl | sombre/sombre | forest cellar kitchen living_room church
= colour
red | rot | rouge/rouge | thing clothes vehicle furniture shape apple rose
blue | blau | bleu/bleue/bleus | thing clothes vehicle furniture shape
green | grün | vert/verte | thing clothes vehicle furniture shape apple frog snake
yellow | gelb | jaune/jaune | thing clothes vehicle furniture shape
black | schwarz | noir/noire | animal thing clothes vehicle shape
white | weiß | blanc/blanche | animal thing clothes vehicle house furniture
brown | braun | marron/marron/marron | animal clothes furniture shape
grey | grau | gris/grise | animal clothes vehicle shape
purple | violett | violet/violette | clothes shape
= verdict
good | gut | <bon/bonne | + text show food drink restaurant hotel
bad | schlecht | <mauvais/mauvaise | - text show food drink restaurant hotel
beautiful | schön | <beau/belle/beaux/bel | + person animal clothes vehicle place nature show text
ugly | hässlich | laid/laide | - clothes vehicle furniture place animal
wonderful | wunderbar | merveilleux/merveilleuse/merveilleux | ! + text show place food
terrible | schrecklich | affreux/affreuse/affreux | ! - text show food drink hotel
excellent | ausgezeichnet | excellent/excellente | ! + food drink text show restaurant
interesting | interessant | intéressant/intéressante | + text show museum town
boring | langweilig | ennuyeux/ennuyeuse/ennuyeux | - text show museum town village
exciting | spannend | passionnant/passionnante | + text show
delicious | köstlich | délicieux/délicieuse/délicieux | ! + food drink
disgusting | eklig | dégoûtant/dégoûtante | ! - food drink
happy | glücklich | heureux/heureuse/heureux | ~ + person animal
sad | traurig | triste/triste | ~ - person
friendly | freundlich | aimable/aimable | + person
mean | gemein | méchant/méchante | - person
clever | klug | intelligent/intelligente | + person animal
stupid | dumm | stupide/stupide | - person
brave | mutig | courageux/courageuse/courageux | + person animal
lazy | faul | paresseux/paresseuse/paresseux | - person animal
funny | lustig | drôle/drôle | + person animal show text
honest | ehrlich | honnête/honnête | + person
generous | großzügig | généreux/généreuse/généreux | + person
rude | unhöflich | impoli/impolie | ~ - person
angry | wütend | furieux/furieuse/furieux | ~ - person
jealous | eifersüchtig | jaloux/jalouse/jaloux | ~ - person
cruel | grausam | cruel/cruelle | - person
comfortable | bequem | confortable/confortable | + chair bed sofa clothes car
useless | nutzlos | inutile/inutile | ! - thing
dangerous | gefährlich | dangereux/dangereuse/dangereux | - animal knife bridge forest
"""

ADVERBS = """
= manner
quickly | schnell | rapidement | action
slowly | langsam | lentement | action
quietly | leise | doucement | action
carefully | vorsichtig | prudemment | action
calmly | ruhig | calmement | action
patiently | geduldig | patiemment | action
nervously | nervös | nerveusement | action
proudly | stolz | fièrement | action
secretly | heimlich | en secret | action
happily | fröhlich | joyeusement | action +
sadly | traurig | tristement | action -
well | gut | bien | skill +
badly | schlecht | mal | skill -
= often
often | oft | souvent | present past perfect future
always | immer | toujours | present past perfect future
sometimes | manchmal | parfois | present past perfect
rarely | selten | rarement | present past perfect rare
already | schon | déjà | perfect
= time
yesterday | gestern | hier | past
last:1 week:2 | letzte:1 Woche:2 | la:2 semaine:2 dernière:1 | past
last:1 night:2 | letzte:1 Nacht:2 | la:2 nuit:2 dernière:1 | past
two:1 days:2 ago:3 | vor:3 zwei:1 Tagen:2 | il:3 y:3 a:3 deux:1 jours:2 | past
today | heute | aujourd'hui | present past future
now | jetzt | maintenant | present
every:1 day:2 | jeden:1 Tag:2 | chaque:1 jour:2 | present
in:1 the:1 morning:2 | am:1 Morgen:2 | le:1 matin:2 | present
tomorrow | morgen | demain | future
soon | bald | bientôt | future
next:1 week:2 | nächste:1 Woche:2 | la:2 semaine:2 prochaine:1 | future
next:1 year:2 | nächstes:1 Jahr:2 | l':2 année:2 prochaine:1 | future
= degree
very | sehr | très |
really | wirklich | vraiment |
too | zu | trop |
"""

# ruff: noqa: E501
"""The verbs, by pattern: `English | German | French | who > whom or what | more`.

English: base/past/participle, the last two where they are not -ed; `wake+up` has a word that stays beside it; then the
preposition of the object: `wait for`.
German: infinitive/present/past/participle (third person singular), `auf|wachen` is separable, `~` forms the perfect
with sein, `sich` is reflexive; then what governs the object: nothing for the accusative, `dat`, or `auf:acc`.
French: an infinitive in -er that is regular, or infinitive/present singular/present plural/participle/stem of the
future (and of the imperfect, where the verb is stative); `~` forms the past with être, `se` is reflexive,
`avoir+besoin` is a fixed pair; then à or de before the object.
More: `stative` (no perfect; imperfect in French), `action` (may be done quickly, carefully, ...), `skill` (may be done
well or badly), `+` and `-` (what it says about the object), `there` (needs a place), `to` (goes to a place).
"""

VERBS = """
= alone
sleep/slept/slept | schlafen/schläft/schlief/geschlafen | dormir/dort/dorment/dormi/dormir | person animal | skill
laugh | lachen/lacht/lachte/gelacht | rire/rit/rient/ri/rir | person |
cry | weinen/weint/weinte/geweint | pleurer | person |
smile | lächeln/lächelt/lächelte/gelächelt | sourire/sourit/sourient/souri/sourir | person |
dance | tanzen/tanzt/tanzte/getanzt | danser | person | action skill
sing/sang/sung | singen/singt/sang/gesungen | chanter | person bird | skill
swim/swam/swum | ~schwimmen/schwimmt/schwamm/geschwommen | nager | person animal | action skill
work | arbeiten/arbeitet/arbeitete/gearbeitet | travailler | person | action skill
play | spielen/spielt/spielte/gespielt | jouer | person animal | skill
arrive | ~an|kommen/kommt/kam/angekommen | ~arriver | person public |
fall/fell/fallen | ~fallen/fällt/fiel/gefallen | ~tomber | person animal |
wake+up/woke/woken | ~auf|wachen/wacht/wachte/aufgewacht | ~se réveiller | person animal |
get+up/got/got | ~auf|stehen/steht/stand/aufgestanden | ~se lever/lève/lèvent/levé/lèver | person |
get+dressed/got/got | sich an|ziehen/zieht/zog/angezogen | ~se habiller | person | action
hurry | sich beeilen/beeilt/beeilte/beeilt | ~se dépêcher | person |
rest | sich aus|ruhen/ruht/ruhte/ausgeruht | ~se reposer | person animal |
get+bored/got/got | sich langweilen/langweilt/langweilte/gelangweilt | ~se ennuyer/ennuie/ennuient/ennuyé/ennuier | person |
sit+down/sat/sat | sich hin|setzen/setzt/setzte/hingesetzt | ~se asseoir/assied/asseyent/assis/assiér | person | action
leave/left/left | ~weg|gehen/geht/ging/weggegangen | ~partir/part/partent/parti/partir | person | action
stay | ~bleiben/bleibt/blieb/geblieben | ~rester | person animal | there
wait | warten/wartet/wartete/gewartet | attendre/attend/attendent/attendu/attendr | person | action
fly/flew/flown | ~fliegen/fliegt/flog/geflogen | voler | wings |
breathe | atmen/atmet/atmete/geatmet | respirer | person animal | action
live | wohnen/wohnt/wohnte/gewohnt | habiter | person | stative there
go/went/gone | ~gehen/geht/ging/gegangen | ~aller/va/vont/allé/ir | person animal | to
travel/travelled/travelled | ~reisen/reist/reiste/gereist | voyager | person | city
return | ~zurück|kehren/kehrt/kehrte/zurückgekehrt | ~retourner | person | to
run/ran/run | ~laufen/läuft/lief/gelaufen | courir/court/courent/couru/courr | person animal | to
= object
see/saw/seen | sehen/sieht/sah/gesehen | voir/voit/voient/vu/verr | person animal > person animal vehicle thing place nature |
hear/heard/heard | hören/hört/hörte/gehört | entendre/entend/entendent/entendu/entendr | person animal > person animal public |
love | lieben/liebt/liebte/geliebt | adorer | person > person animal show place | stative +
like | mögen/mag/mochte/gemocht | aimer | person animal > person animal text show | stative +
hate | hassen/hasst/hasste/gehasst | détester | person > person animal show place | stative -
admire | bewundern/bewundert/bewunderte/bewundert | admirer | person > person nature | stative +
know/knew/known | kennen/kennt/kannte/gekannt | connaître/connaît/connaissent/connu/connaîtr/connaiss | person > person place text | stative
look for | suchen/sucht/suchte/gesucht | chercher | person animal > person animal thing clothes | action
find/found/found | finden/findet/fand/gefunden | trouver | person animal > person animal thing clothes |
visit | besuchen/besucht/besuchte/besucht | visiter | person > place |
invite | ein|laden/lädt/lud/eingeladen | inviter | person > person |
greet | begrüßen/begrüßt/begrüßte/begrüßt | saluer | person > person | action
call | an|rufen/ruft/rief/angerufen | appeler/appelle/appellent/appelé/appeller | person > person |
help | helfen/hilft/half/geholfen dat | aider | person > person animal |
thank | danken/dankt/dankte/gedankt dat | remercier | person > person |
follow | ~folgen/folgt/folgte/gefolgt dat | suivre/suit/suivent/suivi/suivr | person animal > person animal vehicle | action
listen to | zu|hören/hört/hörte/zugehört dat | écouter | person > person | action
wait for | warten/wartet/wartete/gewartet auf:acc | attendre/attend/attendent/attendu/attendr | person > person public | action
look at | an|sehen/sieht/sah/angesehen | regarder | person animal > person animal thing nature | action
watch | beobachten/beobachtet/beobachtete/beobachtet | observer | person animal > person animal | action
chase | verfolgen/verfolgt/verfolgte/verfolgt | poursuivre/poursuit/poursuivent/poursuivi/poursuivr | person animal > person animal |
bite/bit/bitten | beißen/beißt/biss/gebissen | mordre/mord/mordent/mordu/mordr | animal > person animal |
catch/caught/caught | fangen/fängt/fing/gefangen | attraper | person animal > animal |
protect | beschützen/beschützt/beschützte/beschützt | protéger/protège/protègent/protégé/protéger | person animal > person animal |
feed/fed/fed | füttern/füttert/fütterte/gefüttert | nourrir/nourrit/nourrissent/nourri/nourrir | person > animal | action
wash | waschen/wäscht/wusch/gewaschen | laver | person > animal clothes road | action
brush | bürsten/bürstet/bürstete/gebürstet | brosser | person > animal clothes | action
buy/bought/bought | kaufen/kauft/kaufte/gekauft | acheter/achète/achètent/acheté/achèter | person > thing clothes road food drink text furniture |
sell/sold/sold | verkaufen/verkauft/verkaufte/verkauft | vendre/vend/vendent/vendu/vendr | person > thing clothes road food furniture |
eat/ate/eaten | essen/isst/aß/gegessen | manger | person > food | action
drink/drank/drunk | trinken/trinkt/trank/getrunken | boire/boit/boivent/bu/boir | person > drink | action
taste | probieren/probiert/probierte/probiert | goûter | person > food drink | action
prepare | zu|bereiten/bereitet/bereitete/zubereitet | préparer | person > food | action
order | bestellen/bestellt/bestellte/bestellt | commander | person > food drink text |
read/read/read | lesen/liest/las/gelesen | lire/lit/lisent/lu/lir | person > text | action
write/wrote/written | schreiben/schreibt/schrieb/geschrieben | écrire/écrit/écrivent/écrit/écrir | person > written | action
translate | übersetzen/übersetzt/übersetzte/übersetzt | traduire/traduit/traduisent/traduit/traduir | person > written | action
turn+on | ein|schalten/schaltet/schaltete/eingeschaltet | allumer | person > switched |
turn+off | aus|schalten/schaltet/schaltete/ausgeschaltet | éteindre/éteint/éteignent/éteint/éteindr | person > switched |
open | öffnen/öffnet/öffnete/geöffnet | ouvrir/ouvre/ouvrent/ouvert/ouvrir | person > opens | action
close | schließen/schließt/schloss/geschlossen | fermer | person > opens | action
break/broke/broken | zerbrechen/zerbricht/zerbrach/zerbrochen | casser | person animal > brittle |
repair | reparieren/repariert/reparierte/repariert | réparer/répare/réparent/réparé/réparer | person > vehicle device furniture | action
carry | tragen/trägt/trug/getragen | porter | person > thing | action
wear/wore/worn | tragen/trägt/trug/getragen | porter | person > clothes | stative
put+on/put/put | an|ziehen/zieht/zog/angezogen | mettre/met/mettent/mis/mettr | person > pulled | action
take+off/took/taken | aus|ziehen/zieht/zog/ausgezogen | enlever/enlève/enlèvent/enlevé/enlèver | person > pulled | action
lose/lost/lost | verlieren/verliert/verlor/verloren | perdre/perd/perdent/perdu/perdr | person > thing clothes |
steal/stole/stolen | stehlen/stiehlt/stahl/gestohlen | voler | person animal > thing food clothes road |
hide/hid/hidden | verstecken/versteckt/versteckte/versteckt | cacher | person animal > thing food text | action
forget/forgot/forgotten | vergessen/vergisst/vergaß/vergessen | oublier | person > thing text clothes |
clean | putzen/putzt/putzte/geputzt | nettoyer/nettoie/nettoient/nettoyé/nettoier | person > furniture vehicle device | action
paint | malen/malt/malte/gemalt | peindre/peint/peignent/peint/peindr | person > nature animal | action
draw/drew/drawn | zeichnen/zeichnet/zeichnete/gezeichnet | dessiner | person > nature animal vehicle person | action
photograph | fotografieren/fotografiert/fotografierte/fotografiert | photographier | person > nature animal place person |
pick+up | auf|heben/hebt/hob/aufgehoben | ramasser | person > thing | action
throw+away/threw/thrown | weg|werfen/wirft/warf/weggeworfen | jeter/jette/jettent/jeté/jetter | person > thing text clothes |
push | schieben/schiebt/schob/geschoben | pousser | person > road table chair bed sofa desk | action
pull | ziehen/zieht/zog/gezogen | tirer | person horse donkey elephant > road | action
understand/understood/understood | verstehen/versteht/verstand/verstanden | comprendre/comprend/comprennent/compris/comprendr/compren | person > person text | stative
believe | glauben/glaubt/glaubte/geglaubt dat | croire/croit/croient/cru/croir/croy | person > person | stative
need | brauchen/braucht/brauchte/gebraucht | avoir+besoin/a/ont/eu/aur/av de | person > thing person | stative
remember | sich erinnern/erinnert/erinnerte/erinnert an:acc | ~se souvenir/souvient/souviennent/souvenu/souviendr/souven de | person > person place show | stative
fear | sich fürchten/fürchtet/fürchtete/gefürchtet vor:dat | avoir+peur/a/ont/eu/aur/av de | person animal > animal person | stative
laugh at | lachen/lacht/lachte/gelacht über:acc | ~se moquer de | person > person |
think/thought/thought of | denken/denkt/dachte/gedacht an:acc | penser à | person > person place |
dream of | träumen/träumt/träumte/geträumt von:dat | rêver de | person > person animal place vehicle |
talk to | sprechen/spricht/sprach/gesprochen mit:dat | parler à | person > person | action
play with | spielen/spielt/spielte/gespielt mit:dat | jouer avec | person animal > animal person | action
take+care/took/taken of | sich kümmern/kümmert/kümmerte/gekümmert um:acc | ~se occuper de | person > person animal | action
answer | antworten/antwortet/antwortete/geantwortet dat | répondre/répond/répondent/répondu/répondr à | person > person | action
meet/met/met | treffen/trifft/traf/getroffen | rencontrer | person > person |
kiss | küssen/küsst/küsste/geküsst | embrasser | person > person |
recognise | erkennen/erkennt/erkannte/erkannt | reconnaître/reconnaît/reconnaissent/reconnu/reconnaîtr | person > person place |
= gift
give/gave/given | geben/gibt/gab/gegeben | donner | person > thing text clothes food |
show/showed/shown | zeigen/zeigt/zeigte/gezeigt | montrer | person > thing text clothes vehicle animal |
send/sent/sent | schicken/schickt/schickte/geschickt | envoyer/envoie/envoient/envoyé/enverr | person > thing text |
bring/brought/brought | bringen/bringt/brachte/gebracht | apporter | person > thing text food drink |
lend/lent/lent | leihen/leiht/lieh/geliehen | prêter | person > thing text clothes road |
sell/sold/sold | verkaufen/verkauft/verkaufte/verkauft | vendre/vend/vendent/vendu/vendr | person > road furniture |
= claim
say/said/said | sagen/sagt/sagte/gesagt | dire/dit/disent/dit/dir | person |
think/thought/thought | glauben/glaubt/glaubte/geglaubt | penser | person |
know/knew/known | wissen/weiß/wusste/gewusst | savoir/sait/savent/su/saur | person |
hope | hoffen/hofft/hoffte/gehofft | espérer/espère/espèrent/espéré/espérer | person |
claim | behaupten/behauptet/behauptete/behauptet | affirmer | person |
write/wrote/written | schreiben/schreibt/schrieb/geschrieben | écrire/écrit/écrivent/écrit/écrir | person |
"""

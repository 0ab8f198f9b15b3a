# ruff: noqa: E501
"""The nouns, by kind of thing: `English/plural | German article and noun/plural | French gender and noun/plural | more`.

A plural is written where no rule gives it (English: -s, -es, -ies; French: -s, -x, -aux); German plurals are always
written, and `*` marks a noun of the n-declension (der Junge, den Jungen). `/-` marks a noun that is not counted. The
last column names further kinds a noun belongs to, or, after `@`, the prepositions of being there where they are not
in, in, dans. Where an expression has several words, digits say which of them correspond.
"""

NOUNS = """
= person
man/men | der Mann/Männer | m homme
woman/women | die Frau/Frauen | f femme
boy | der Junge*/Jungen | m garçon
girl | das Mädchen/Mädchen | f fille
child/children | das Kind/Kinder | m enfant
father | der Vater/Väter | m père
mother | die Mutter/Mütter | f mère
brother | der Bruder/Brüder | m frère
sister | die Schwester/Schwestern | f sœur
uncle | der Onkel/Onkel | m oncle
aunt | die Tante/Tanten | f tante
grandmother | die Großmutter/Großmütter | f grand-mère/grands-mères
grandfather | der Großvater/Großväter | m grand-père/grands-pères
friend | der Freund/Freunde | m ami
neighbour | der Nachbar*/Nachbarn | m voisin
teacher | der Lehrer/Lehrer | m professeur
doctor | der Arzt/Ärzte | m médecin
student | der Student*/Studenten | m étudiant
farmer | der Bauer*/Bauern | m agriculteur
baker | der Bäcker/Bäcker | m boulanger
cook | der Koch/Köche | m cuisinier
king | der König/Könige | m roi
queen | die Königin/Königinnen | f reine
artist | der Künstler/Künstler | m artiste
painter | der Maler/Maler | m peintre
singer | die Sängerin/Sängerinnen | f chanteuse
actress | die Schauspielerin/Schauspielerinnen | f actrice
writer | der Schriftsteller/Schriftsteller | m écrivain
nurse | die Krankenschwester/Krankenschwestern | f infirmière
waiter | der Kellner/Kellner | m serveur
soldier | der Soldat*/Soldaten | m soldat
guest | der Gast/Gäste | m invité
policeman/policemen | der Polizist*/Polizisten | m policier
firefighter | der Feuerwehrmann/Feuerwehrmänner | m pompier
gardener | der Gärtner/Gärtner | m jardinier
judge | der Richter/Richter | m juge
colleague | der Kollege*/Kollegen | m collègue
thief/thieves | der Dieb/Diebe | m voleur
customer | der Kunde*/Kunden | m client
hairdresser | der Friseur/Friseure | m coiffeur
bus:1 driver:2 | der Busfahrer/Busfahrer | m conducteur:2 de:1 bus:1/conducteurs:2 de:1 bus:1
= animal
dog | der Hund/Hunde | m chien
cat | die Katze/Katzen | m chat
horse | das Pferd/Pferde | m cheval
cow | die Kuh/Kühe | f vache
mouse/mice | die Maus/Mäuse | f souris
sheep/sheep | das Schaf/Schafe | m mouton
pig | das Schwein/Schweine | m cochon
rabbit | das Kaninchen/Kaninchen | m lapin
bear | der Bär*/Bären | m ours
wolf/wolves | der Wolf/Wölfe | m loup
fox | der Fuchs/Füchse | m renard
lion | der Löwe*/Löwen | m lion
elephant | der Elefant*/Elefanten | m éléphant
monkey | der Affe*/Affen | m singe
goat | die Ziege/Ziegen | f chèvre
donkey | der Esel/Esel | m âne
frog | der Frosch/Frösche | f grenouille
snake | die Schlange/Schlangen | m serpent
hedgehog | der Igel/Igel | m hérisson
squirrel | das Eichhörnchen/Eichhörnchen | m écureuil
turtle | die Schildkröte/Schildkröten | f tortue
guinea pig | das Meerschweinchen/Meerschweinchen | m cochon d' Inde/cochons d' Inde
bird | der Vogel/Vögel | m oiseau | wings
duck | die Ente/Enten | m canard | wings
owl | die Eule/Eulen | m hibou/hiboux | wings
goose/geese | die Gans/Gänse | f oie | wings
eagle | der Adler/Adler | m aigle | wings
bee | die Biene/Bienen | f abeille | wings
butterfly | der Schmetterling/Schmetterlinge | m papillon | wings
= food
apple | der Apfel/Äpfel | f pomme
pear | die Birne/Birnen | f poire
egg | das Ei/Eier | m œuf
cake | der Kuchen/Kuchen | m gâteau
potato/potatoes | die Kartoffel/Kartoffeln | f pomme de terre/pommes de terre
tomato/tomatoes | die Tomate/Tomaten | f tomate
carrot | die Karotte/Karotten | f carotte
cherry | die Kirsche/Kirschen | f cerise
onion | die Zwiebel/Zwiebeln | m oignon
strawberry | die Erdbeere/Erdbeeren | f fraise
lemon | die Zitrone/Zitronen | m citron
mushroom | der Pilz/Pilze | m champignon
nut | die Nuss/Nüsse | f noix
biscuit | der Keks/Kekse | m biscuit
peach | der Pfirsich/Pfirsiche | f pêche
sausage | die Wurst/Würste | f saucisse
bean | die Bohne/Bohnen | m haricot
bread/- | das Brot | m pain | mass
cheese/- | der Käse | m fromage | mass
meat/- | das Fleisch | f viande | mass
rice/- | der Reis | m riz | mass
soup/- | die Suppe | f soupe | mass
chocolate/- | die Schokolade | m chocolat | mass
honey/- | der Honig | m miel | mass
ice cream/- | das Eis | f glace | mass
= drink
water/- | das Wasser | f eau
milk/- | die Milch | m lait
coffee/- | der Kaffee | m café
tea/- | der Tee | m thé
wine/- | der Wein | m vin
beer/- | das Bier | f bière
orange:1 juice:2/- | der Orangensaft | m jus:2 d':1 orange:1
apple:1 juice:2/- | der Apfelsaft | m jus:2 de:1 pomme:1
= thing
key | der Schlüssel/Schlüssel | f clé
lamp | die Lampe/Lampen | f lampe | device
cup | die Tasse/Tassen | f tasse | brittle
glass | das Glas/Gläser | m verre | brittle
bottle | die Flasche/Flaschen | f bouteille | brittle opens
plate | der Teller/Teller | f assiette | brittle
mirror | der Spiegel/Spiegel | m miroir | brittle
bag | die Tasche/Taschen | m sac | opens
box | die Kiste/Kisten | f boîte | opens
suitcase | der Koffer/Koffer | f valise | opens
knife/knives | das Messer/Messer | m couteau
spoon | der Löffel/Löffel | f cuillère
clock | die Uhr/Uhren | f horloge | device
umbrella | der Regenschirm/Regenschirme | m parapluie
phone | das Telefon/Telefone | m téléphone | device
computer | der Computer/Computer | m ordinateur | device switched
radio/radios | das Radio/Radios | f radio | device switched
vacuum cleaner | der Staubsauger/Staubsauger | m aspirateur | device switched
washing:1 machine:2 | die Waschmaschine/Waschmaschinen | f machine:2 à:1 laver:1/machines:2 à:1 laver:1 | device switched
camera | der Fotoapparat/Fotoapparate | m appareil photo/appareils photo | device
ball | der Ball/Bälle | m ballon
doll | die Puppe/Puppen | f poupée
toy | das Spielzeug/Spielzeuge | m jouet
candle | die Kerze/Kerzen | f bougie
picture | das Bild/Bilder | m tableau
flower | die Blume/Blumen | f fleur
gift | das Geschenk/Geschenke | m cadeau | opens
wallet | die Brieftasche/Brieftaschen | m portefeuille
toothbrush | die Zahnbürste/Zahnbürsten | f brosse à dents/brosses à dents
guitar | die Gitarre/Gitarren | f guitare
violin | die Geige/Geigen | m violon
basket | der Korb/Körbe | m panier
= text
book | das Buch/Bücher | m livre | written
letter | der Brief/Briefe | f lettre | written opens
poem | das Gedicht/Gedichte | m poème | written
story | die Geschichte/Geschichten | f histoire | written
novel | der Roman/Romane | m roman | written
newspaper | die Zeitung/Zeitungen | m journal
magazine | die Zeitschrift/Zeitschriften | m magazine
dictionary | das Wörterbuch/Wörterbücher | m dictionnaire
postcard | die Postkarte/Postkarten | f carte postale/cartes postales | written
fairy:1 tale:2 | das Märchen/Märchen | m conte:2 de:1 fées:1/contes:2 de:1 fées:1 | written
= show
film | der Film/Filme | m film
song | das Lied/Lieder | f chanson
concert | das Konzert/Konzerte | m concert
play | das Theaterstück/Theaterstücke | f pièce de théâtre/pièces de théâtre
= clothes
coat | der Mantel/Mäntel | m manteau | pulled
shirt | das Hemd/Hemden | f chemise | pulled
skirt | der Rock/Röcke | f jupe | pulled
dress | das Kleid/Kleider | f robe | pulled
shoe | der Schuh/Schuhe | f chaussure | pulled
jacket | die Jacke/Jacken | f veste | pulled
glove | der Handschuh/Handschuhe | m gant | pulled
sock | die Socke/Socken | f chaussette | pulled
sweater | der Pullover/Pullover | m pull | pulled
hat | der Hut/Hüte | m chapeau
scarf/scarves | der Schal/Schals | f écharpe
belt | der Gürtel/Gürtel | f ceinture
= vehicle
car | das Auto/Autos | f voiture | road
bicycle | das Fahrrad/Fahrräder | m vélo | road
motorcycle | das Motorrad/Motorräder | f moto | road
truck | der Lastwagen/Lastwagen | m camion | road
sailing boat | das Segelboot/Segelboote | m voilier
train | der Zug/Züge | m train | public
bus | der Bus/Busse | m bus | public
ship | das Schiff/Schiffe | m bateau | public
plane | das Flugzeug/Flugzeuge | m avion | public
= furniture
table | der Tisch/Tische | f table
chair | der Stuhl/Stühle | f chaise
bed | das Bett/Betten | m lit
sofa | das Sofa/Sofas | m canapé
bookshelf/bookshelves | das Bücherregal/Bücherregale | f étagère
wardrobe | der Kleiderschrank/Kleiderschränke | f armoire | opens
desk | der Schreibtisch/Schreibtische | m bureau
fridge | der Kühlschrank/Kühlschränke | m réfrigérateur | opens device
door | die Tür/Türen | f porte | opens
window | das Fenster/Fenster | f fenêtre | opens
= place
house | das Haus/Häuser | f maison
school | die Schule/Schulen | f école
church | die Kirche/Kirchen | f église
garden | der Garten/Gärten | m jardin
park | der Park/Parks | m parc
kitchen | die Küche/Küchen | f cuisine
hospital | das Krankenhaus/Krankenhäuser | m hôpital
hotel | das Hotel/Hotels | m hôtel
restaurant | das Restaurant/Restaurants | m restaurant
museum | das Museum/Museen | m musée
library | die Bibliothek/Bibliotheken | f bibliothèque
castle | das Schloss/Schlösser | m château
village | das Dorf/Dörfer | m village
town | die Stadt/Städte | f ville
forest | der Wald/Wälder | f forêt
office | das Büro/Büros | m bureau
bakery | die Bäckerei/Bäckereien | f boulangerie
swimming pool | das Schwimmbad/Schwimmbäder | f piscine @at in à
factory | die Fabrik/Fabriken | f usine
theatre | das Theater/Theater | m théâtre
cinema | das Kino/Kinos | m cinéma @at in à
apartment | die Wohnung/Wohnungen | m appartement
cellar | der Keller/Keller | f cave
living room | das Wohnzimmer/Wohnzimmer | m salon
train station | der Bahnhof/Bahnhöfe | f gare @at an à
market | der Markt/Märkte | m marché @at auf à
beach | der Strand/Strände | f plage @on an sur
airport | der Flughafen/Flughäfen | m aéroport @at an à
island | die Insel/Inseln | f île @on auf sur
bridge | die Brücke/Brücken | m pont @on auf sur
= nature
tree | der Baum/Bäume | m arbre
apple tree | der Apfelbaum/Apfelbäume | m pommier
cherry tree | der Kirschbaum/Kirschbäume | m cerisier
rose | die Rose/Rosen | f rose
sunflower | die Sonnenblume/Sonnenblumen | m tournesol
stone | der Stein/Steine | f pierre
tower | der Turm/Türme | f tour
lake | der See/Seen | m lac
river | der Fluss/Flüsse | f rivière
mountain | der Berg/Berge | f montagne
= shape
circle | der Kreis/Kreise | m cercle
square | das Quadrat/Quadrate | m carré
triangle | das Dreieck/Dreiecke | m triangle
star | der Stern/Sterne | f étoile
cross | das Kreuz/Kreuze | f croix
ring | der Ring/Ringe | m anneau
arrow | der Pfeil/Pfeile | f flèche
diamond | die Raute/Rauten | m losange
moon | der Mond/Monde | f lune
cloud | die Wolke/Wolken | m nuage
fish/fish | der Fisch/Fische | m poisson
flag | die Fahne/Fahnen | m drapeau
"""
